-- Names this database to the nodes. A restored database gets another identity, and nodes then send their records again.
create table ledger_identity (
  only_one boolean primary key default true check (only_one),
  id uuid not null
);
insert into ledger_identity (id) values (gen_random_uuid());
