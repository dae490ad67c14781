-- Invoices: one for an account's billing period. They never change, so they hold copies of all that they show.

-- The address on an account's next invoices.
create table billing_details (
  account_id uuid primary key references accounts,
  name text not null,
  street text not null,
  postal_code text not null,
  city text not null,
  country text not null check (country ~ '^[A-Z]{2}$'),
  vat_id text,
  email text
);

-- The newest invoice. Its row is locked until the next one is committed, so that numbers have no gaps and days never decrease.
create table invoice_numbers (
  only_row boolean primary key default true check (only_row),
  year integer not null,
  position integer not null,
  issued_at timestamptz not null
);
insert into invoice_numbers values (true, 0, 0, 'epoch');

create table invoices (
  number text primary key,
  year integer not null,                     -- German year of issue
  position integer not null check (position >= 1), -- in this year
  account_id uuid not null references accounts,
  period_start timestamptz not null,
  period_end timestamptz not null check (period_end > period_start),
  issued_at timestamptz not null,
  seller jsonb not null,
  buyer jsonb not null,
  net_cents integer not null check (net_cents > 0),
  vat_hundredths integer not null check (vat_hundredths between 0 and 10000), -- of a percent
  vat_cents integer not null check (vat_cents >= 0),
  note text,
  unique (year, position),
  unique (account_id, period_end)
);

alter table invoice_lines add column invoice_number text references invoices;
create index invoice_lines_without_number on invoice_lines (period_end) where invoice_number is null;
create index invoice_lines_of_number on invoice_lines (invoice_number);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'an invoice never changes';
end $$;
create trigger invoices_never_change before update or delete on invoices
  for each row execute function refuse_change();
create trigger invoiced_lines_never_change before update or delete on invoice_lines
  for each row when (old.invoice_number is not null) execute function refuse_change();
