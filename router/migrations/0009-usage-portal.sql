-- What the portal tells of usage: refusals, notices, and an audit log that forgets what is older than it is kept.

-- Refused requests, added up. German days begin at whole hours of UTC, so that hours make days. No foreign keys, as usage.
create table refusals (
  account_id uuid not null,
  key_id uuid not null,
  user_id uuid not null,
  hour timestamptz not null check (extract(epoch from hour)::bigint % 3600 = 0),
  code text not null,
  count bigint not null check (count > 0),
  primary key (account_id, hour, key_id, code)
) with (fillfactor = 80);
create index refusals_by_hour on refusals (hour);

-- Each event once. `event` says which one among those of its kind, such as the billing period; texts are the client's.
alter table notices
  drop constraint notices_pkey,
  drop constraint notices_kind_check,
  add column id uuid not null default gen_random_uuid(),
  add column event text,
  add column user_id uuid references users on delete cascade,      -- whom it is about; null: the whole account
  add column key_id uuid references api_keys on delete cascade,
  add column facts jsonb not null default '{}';
update notices set event = (extract(epoch from period_start) * 1000)::bigint;
alter table notices
  drop column period_start,
  alter column event set not null,
  add primary key (id),
  add unique (account_id, kind, event),
  add check (kind in ('quota-75', 'quota-90', 'quota-100', 'key-limit', 'user-limit', 'key-expiring', 'trial-ending',
    'model-status', 'model-factor'));
create index notices_by_time on notices (account_id, created_at desc);

create table notice_reads (
  user_id uuid not null references users on delete cascade,
  notice_id uuid not null references notices on delete cascade,
  read_at timestamptz not null,
  primary key (user_id, notice_id)
);
create index readers_of_notice on notice_reads (notice_id);

create index keys_to_expire on api_keys (expires_at) where revoked_at is null;

-- The catalogue that accounts were last told of. Only a change of it is news.
create table announced_models (
  model text primary key,
  status text,                               -- null: not in the catalogue any more
  factors jsonb not null,                    -- [[valid from, ms; millicredits per token], …], oldest first
  version bigint not null                    -- tells one change from the same change made again later
);

-- Where a chain begins whose oldest entries are no longer kept: the last that was removed.
create table audit_checkpoints (
  account_id uuid primary key references accounts,
  number bigint not null check (number >= 1),
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  removed_at timestamptz not null
);
create index audit_log_by_time on audit_log using brin (at);

-- Nothing is changed, and the oldest entries go only where the router says that it removes them.
create or replace function refuse_audit_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and current_setting('weiche.audit_retention', true) = 'on' then
    return null;
  end if;
  raise exception 'the audit log is only added to' using errcode = '23000';
end $$;
