-- How people sign in. Of everything that opens a door only a hash is kept; the shared secret of TOTP cannot be one.

alter table users
  add column language text check (language in ('de', 'en')),   -- null: as the browser says
  add column theme text check (theme in ('light', 'dark'));    -- null: as the system says

-- Apart from `users`, whose every change is told to the caches of keys. No row: never joined.
create table credentials (
  user_id uuid primary key references users on delete cascade,
  password text not null check (password like '$argon2id$%'),  -- as a PHC string
  password_set_at timestamptz not null,
  last_login_at timestamptz,
  failed_logins integer not null default 0,                    -- since then
  totp_secret text,                                            -- base32
  totp_since timestamptz check (totp_since is null or totp_secret is not null),   -- null: set up, never confirmed
  totp_step bigint                                             -- of the last code that was taken: none counts twice
);

create table recovery_codes (
  user_id uuid not null references credentials on delete cascade,
  code_hash text not null check (code_hash ~ '^[0-9a-f]{64}$'),
  primary key (user_id, code_hash)
);

create table sessions (
  id uuid primary key,
  token_hash text not null unique check (token_hash ~ '^[0-9a-f]{64}$'),
  user_id uuid not null references users on delete cascade,
  -- A session ends when the role becomes another one.
  role text not null check (role in ('owner', 'admin', 'member')),
  source text not null,
  agent text not null check (length(agent) <= 200),
  created_at timestamptz not null,
  seen_at timestamptz not null,              -- to the minute
  expires_at timestamptz not null check (expires_at > created_at)
);
create index sessions_of_user on sessions (user_id);

-- One per user: who is invited again gets another one in its place.
alter table invitations add column withdrawn_at timestamptz;
delete from invitations i using invitations j
  where i.user_id = j.user_id and (i.created_at, i.token_hash) < (j.created_at, j.token_hash);
drop index invitations_of_user;
create unique index invitation_of_user on invitations (user_id);

create table password_resets (
  token_hash text primary key check (token_hash ~ '^[0-9a-f]{64}$'),
  user_id uuid not null references users on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null check (expires_at > created_at)
);
create index password_resets_of_user on password_resets (user_id);

-- Leaky buckets of attempts. Subjects are hashes: people type passwords into the wrong field.
create table attempts (
  subject text primary key check (subject ~ '^[0-9a-f]{64}$'),
  level double precision not null check (level >= 0),
  at timestamptz not null,
  known_until timestamptz                    -- a pair of person and network that signed in
);
create index attempts_at on attempts (at);
