-- Registrations whose address is not confirmed yet. Only the hash of the mailed link's token is kept.
create table registrations (
  email text primary key,
  token_hash text not null unique check (token_hash ~ '^[0-9a-f]{64}$'),
  account_name text not null,
  language text,
  terms text,                                -- the address of the accepted terms
  created_at timestamptz not null,
  expires_at timestamptz not null check (expires_at > created_at)
);
create index registrations_by_end on registrations (expires_at);
