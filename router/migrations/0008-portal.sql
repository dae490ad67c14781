-- What the portal's lists show and how its orders are kept.

-- Apart from `api_keys`, whose every change is told to the caches of keys. Written with the usage records, so of requests
-- that were answered, and once a minute per key at most. No foreign key, as usage.
create table key_uses (
  key_id uuid primary key,
  last_used_at timestamptz not null
) with (fillfactor = 80);

create index api_keys_of_account on api_keys (account_id);

-- Quotes that were ordered: sent again, one changes nothing.
create table ordered_quotes (
  account_id uuid not null references accounts,
  quote_id text not null,
  wish text not null,                        -- what was ordered by it
  ordered_at timestamptz not null,
  primary key (account_id, quote_id)
);
alter table subscriptions drop column quote_id;

-- Users who are deleted stay as what usage, keys and the audit log refer to, without their address.
alter table users
  add column deleted_at timestamptz,
  add check (deleted_at is null or (blocked and email = id || '@deleted.invalid'));
