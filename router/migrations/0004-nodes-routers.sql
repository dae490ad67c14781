-- What operators want of the nodes, and which routers share this database.

-- The highest generation of a node holds; it begins with the time, so that it grows in a new database too.
create table node_wishes (
  node text primary key,
  generation bigint not null,
  maintenance boolean not null,
  prewarm_model text,                        -- asked for once: nobody is told of it later than
  prewarm_until timestamptz
);

create table routers (
  id uuid primary key,
  seen_at timestamptz not null
);
