-- Revoked and expired keys leave `api_keys` after a time, so that lists stay short. Usage keeps their names.
create table retired_keys (
  id uuid primary key,
  account_id uuid not null references accounts,
  user_id uuid not null references users,
  name text not null,
  last_four text not null,
  retired_at timestamptz not null
);
create index retired_keys_of_account on retired_keys (account_id);

create view known_keys as
  select id, account_id, user_id, name, last_four from api_keys
  union all
  select id, account_id, user_id, name, last_four from retired_keys;

-- A key may leave before the one that it took the place of.
alter table api_keys drop constraint api_keys_regenerated_as_fkey;

create index living_keys_of_user on api_keys (user_id, expires_at) where revoked_at is null;
create index notices_of_key on notices (key_id) where key_id is not null;
create index living_users_of_account on users (account_id) where deleted_at is null;
create index audit_log_by_account_and_time on audit_log (account_id, at desc, number desc);
