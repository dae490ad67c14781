-- Accounts, their users and keys, and the packages they booked. Credits are thousandths (bigint), ids UUIDv7.

create table accounts (
  id uuid primary key,
  name text not null check (name = btrim(name) and length(name) between 1 and 200 and name !~ '[[:cntrl:]]'),
  -- While this lies ahead the quota is used up. It ends with the billing period, by the clock.
  exhausted_until timestamptz,
  created_at timestamptz not null
);

create table users (
  id uuid primary key,
  account_id uuid not null references accounts,
  email text not null unique check (email = lower(email) and length(email) <= 254 and email ~ '^[^@[:space:]]+@[^@[:space:]]+$'),
  role text not null check (role in ('owner', 'admin', 'member')),
  blocked boolean not null default false,
  allowed_models text[],                     -- null: every model
  credit_limit bigint check (credit_limit >= 0),
  limit_reached_until timestamptz,
  created_at timestamptz not null,
  unique (id, account_id)
);
create index users_of_account on users (account_id);

-- A link that its receiver uses once; only the hash of its token is kept.
create table invitations (
  token_hash text primary key check (token_hash ~ '^[0-9a-f]{64}$'),
  user_id uuid not null references users on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null check (expires_at > created_at),
  used_at timestamptz
);
create index invitations_of_user on invitations (user_id);

create table api_keys (
  id uuid primary key,
  account_id uuid not null,
  user_id uuid not null,
  hash text not null unique check (hash ~ '^[0-9a-f]{64}$'),
  last_four text not null check (length(last_four) = 4),
  name text not null check (name = btrim(name) and length(name) between 1 and 200 and name !~ '[[:cntrl:]]'),
  allowed_models text[],                     -- null: every model that the user may use
  credit_limit bigint check (credit_limit >= 0),
  limit_reached_until timestamptz,
  expires_at timestamptz,
  revoked_at timestamptz,
  -- The key that took its place.
  regenerated_as uuid references api_keys deferrable initially deferred,
  created_at timestamptz not null,
  foreign key (user_id, account_id) references users (id, account_id),
  check (regenerated_as is null or revoked_at is not null)
);
create index api_keys_of_user on api_keys (user_id);

-- A booked package from its beginning to its end. Billing periods follow from `started_at` alone: see billing-period.ts.
create table subscriptions (
  account_id uuid not null references accounts,
  package text not null check (package in ('Starter', 'Pro', 'Business', 'Business Plus')),
  state text not null check (state in ('trial', 'active')),
  started_at timestamptz not null,
  ended_at timestamptz check (ended_at > started_at),
  primary key (account_id, started_at),
  -- Request ids count milliseconds: every one of them must lie clearly on one side.
  check (started_at = date_trunc('milliseconds', started_at) and ended_at = date_trunc('milliseconds', ended_at))
);
-- That terms do not overlap is kept by the router, which changes them all at once with the account's row locked: an exclusion
-- constraint over account and time needs btree_gist, which not every server has.
create unique index one_open_subscription on subscriptions (account_id) where ended_at is null;

-- What changed, for those who keep copies in memory. Numbers come from one row, which its writer holds until the commit:
-- they have no holes and become visible in their order (a sequence promises neither).
create table change_counter (
  only_row boolean primary key default true check (only_row),
  number bigint not null
);
insert into change_counter values (true, 0);

create table changes (
  number bigint primary key,
  kind text not null check (kind in ('account', 'user', 'key')),
  subject uuid not null
);

create function note_change() returns trigger language plpgsql as $$
declare
  n bigint;
begin
  update change_counter set number = number + 1 returning number into n;
  insert into changes values (n, tg_argv[0], (to_jsonb(coalesce(new, old)) ->> tg_argv[1])::uuid);
  delete from changes where number = n - 100000;
  notify weiche_changes;
  return null;
end $$;

-- Deferred to the commit, so that the counter's row is locked last and for a moment only.
create constraint trigger accounts_changed after update or delete on accounts deferrable initially deferred
  for each row execute function note_change('account', 'id');
create constraint trigger users_changed after update or delete on users deferrable initially deferred
  for each row execute function note_change('user', 'id');
create constraint trigger keys_changed after insert or update or delete on api_keys deferrable initially deferred
  for each row execute function note_change('key', 'id');
create constraint trigger subscriptions_changed after insert or update or delete on subscriptions deferrable initially deferred
  for each row execute function note_change('account', 'account_id');
