-- Who did what: a chain of entries per account, each of which holds the hash of the one before in its own.

create table audit_log (
  account_id uuid not null references accounts,
  number bigint not null check (number >= 1),
  at timestamptz not null,
  actor text not null,                       -- the id of a user, or `operator`
  source text not null,                      -- where from: an address, or the operators' socket
  action text not null,                      -- such as key.revoke
  object text not null,                      -- such as key 0190…
  result text not null,                      -- done, or refused and why
  details text not null,                     -- JSON as it was hashed
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  primary key (account_id, number)
);

-- The last entry of each chain: held while one is added, and the witness that none was cut off at the end.
create table audit_heads (
  account_id uuid primary key references accounts,
  number bigint not null check (number >= 0),
  hash text not null
);

create function refuse_audit_change() returns trigger language plpgsql as $$
begin
  raise exception 'the audit log is only added to' using errcode = '23000';
end $$;
create trigger audit_log_kept before update or delete or truncate on audit_log
  for each statement execute function refuse_audit_change();
