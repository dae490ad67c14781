-- Failures of a node's engines up to this number have been seen by an operator: its agent no longer reports them.
alter table node_wishes add column acknowledged_failure bigint not null default 0;
