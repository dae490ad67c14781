-- Packages are data: what there is to book, and on which terms from when on. The router writes what the catalogue file says.

create table packages (
  name text primary key check (length(name) between 2 and 60),
  position integer not null,                 -- of the list
  is_listed boolean not null,                -- false: the file does not name it any more, and no account has it
  has_trial boolean not null,                -- the package of the free trial
  only_for uuid[]                            -- the accounts that see it; null: every account
);

-- Terms that are effective never change, and their rows stay.
create table package_terms (
  package text not null references packages,
  valid_from timestamptz not null,           -- as the file says
  effective_from timestamptz not null,       -- no earlier than the router first read of them, once the package was booked
  price_cents integer not null check (price_cents > 0),
  credits bigint not null check (credits > 0),
  requests_per_minute integer not null check (requests_per_minute > 0),
  parallel_requests integer not null check (parallel_requests > 0),
  email_support boolean not null,
  primary key (package, valid_from)
);

insert into packages values
  ('Starter', 0, true, true), ('Pro', 1, true, false), ('Business', 2, true, false), ('Business Plus', 3, true, false);
insert into package_terms
  select name, '2026-01-01T00:00:00+01:00', '2026-01-01T00:00:00+01:00', price, credits * 1000000, per_minute, parallel, support
  from (values ('Starter', 700, 5::bigint, 30, 5, false), ('Pro', 3500, 80, 60, 10, true),
    ('Business', 12900, 320, 150, 20, true), ('Business Plus', 24900, 650, 150, 20, true))
    as p (name, price, credits, per_minute, parallel, support);

alter table subscriptions
  drop constraint subscriptions_package_check,
  add foreign key (package) references packages;
alter table invoice_lines
  drop constraint invoice_lines_package_check,
  add foreign key (package) references packages;

alter table notices
  drop constraint notices_kind_check,
  add constraint notices_kind_check check (kind in ('quota-75', 'quota-90', 'quota-100', 'key-limit', 'user-limit',
    'key-expiring', 'trial-ending', 'model-status', 'model-factor', 'model-change', 'package-terms'));
