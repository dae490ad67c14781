-- Who evaluates usage, and what was noticed about it.

-- What one router at a time does. Times are those of the database.
create table leases (
  name text primary key,
  holder uuid not null,
  held_until timestamptz not null
);

-- Shown in the portal, once per billing period.
create table notices (
  account_id uuid not null references accounts,
  period_start timestamptz not null,
  kind text not null check (kind in ('quota-75', 'quota-90', 'quota-100')),
  created_at timestamptz not null,
  primary key (account_id, period_start, kind)
);
