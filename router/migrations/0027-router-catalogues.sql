-- The digest of the catalogue that each router uses. Null: the router's version does not write it.
alter table routers add column catalogue text;
