-- Packages over time: what is to come is written down when it is decided, and every charge once.

alter table subscriptions
  -- The order whose rhythm the billing periods keep: see subscription-rules.ts. null: its own beginning.
  add column rhythm_from timestamptz
    check (rhythm_from <= started_at and rhythm_from = date_trunc('milliseconds', rhythm_from)),
  -- The quote that was ordered: sent again it changes nothing.
  add column quote_id text;

alter table accounts
  -- Where the time begins that has to be paid for next.
  add column next_charge_at timestamptz,
  -- The last change or charge: no change of the package happens before it, whatever the clock says.
  add column package_changed_at timestamptz;
create index accounts_to_charge on accounts (next_charge_at) where next_charge_at is not null;
update accounts set next_charge_at = 'epoch' where id in (select account_id from subscriptions);

-- Net, in cents. A period is charged once, and so is the instant of an upgrade, which lies strictly inside one.
create table invoice_lines (
  account_id uuid not null references accounts,
  reason text not null check (reason in ('package', 'upgrade')),
  package text not null check (package in ('Starter', 'Pro', 'Business', 'Business Plus')),
  period_start timestamptz not null,
  period_end timestamptz not null check (period_end > period_start),
  days integer not null check (days >= 1),               -- paid for, of those of the whole billing period
  period_days integer not null check (period_days >= days),
  amount_cents integer not null check (amount_cents > 0),
  created_at timestamptz not null,
  primary key (account_id, period_start)
);
