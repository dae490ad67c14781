-- What the routers of this database sign grants with (router/src/credits/grants.ts). Who knows it can bill any account.
create table grant_secret (
  only_one boolean primary key default true check (only_one),
  secret bytea not null check (length(secret) = 32)
);
-- Two UUIDs have 244 random bits, of the server's own cryptographic source.
insert into grant_secret (secret) values (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));
