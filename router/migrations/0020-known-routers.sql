-- What each router says of itself with every heartbeat: to operators, to the other routers, and through them to the nodes.

alter table routers
  add column host text,                      -- of its machine
  add column directory text,                 -- its state directory: one process at a time
  add column version text,
  add column started_at timestamptz,
  add column state text,                     -- starting, ready, leaving or stopped
  add column link_address text,              -- where nodes dial it; null: it does not know
  add column data_address text,
  add column running_requests integer,
  add column clock_ahead_ms double precision, -- of the database's clock, as far as it is certain
  add column limit_store text,
  add column nodes text[];                   -- that are linked to it
