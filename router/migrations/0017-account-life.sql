-- Accounts that are blocked by the operator, and those that are deleted: without names and addresses, with what was billed.

alter table accounts
  add column blocked_at timestamptz,
  add column deleted_at timestamptz check (deleted_at is null or next_charge_at is null);
