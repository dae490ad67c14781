-- Mails about notices. A row is one mail to one person, so that no router sends it twice, also after a restart.
create table notice_mails (
  notice_id uuid not null references notices on delete cascade,
  user_id uuid not null references users on delete cascade,
  taken_at timestamptz,                      -- a router sends it; it is not tried again unless that router says it failed
  failures smallint not null default 0,
  primary key (notice_id, user_id)
);
create index notice_mails_due on notice_mails (notice_id) where taken_at is null;
create index notice_mails_of_user on notice_mails (user_id);
create index notices_to_mail on notices (created_at) where kind in
  ('quota-75', 'quota-90', 'quota-100', 'key-limit', 'user-limit', 'key-expiring', 'trial-ending', 'package-ending');

-- Kinds of mail that a person does not want: quota, limits, keys, package, sign-in.
alter table users add column mails_off text[] not null default '{}';

-- Networks from which a person has signed in. A sign-in from another one is mailed.
create table known_places (
  user_id uuid not null references users on delete cascade,
  place text not null,
  seen_at timestamptz not null,
  primary key (user_id, place)
);
create index known_places_by_time on known_places (seen_at);

-- A package that was cancelled ends.
alter table notices
  drop constraint notices_kind_check,
  add constraint notices_kind_check check (kind in ('quota-75', 'quota-90', 'quota-100', 'key-limit', 'user-limit',
    'key-expiring', 'trial-ending', 'package-ending', 'model-status', 'model-factor', 'model-change', 'package-terms'));
