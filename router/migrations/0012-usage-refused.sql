-- Usage records that nodes were told are taken, and that were not billed: what they said, and why. They come from nodes and
-- may be wrong in every field, so that nothing here has the type that it should have.
create table usage_refused (
  node text not null,
  request_id text not null,
  attempt bigint not null,
  reason text not null,
  detail text,                               -- the database's words, or what could not be read
  account_id text not null,
  user_id text not null,
  key_id text not null,
  model text not null,
  factor numeric not null,                   -- millicredits per token
  prompt_tokens numeric not null,
  completion_tokens numeric not null,
  source text not null,
  outcome text not null,
  refused_at timestamptz not null,
  primary key (node, request_id, attempt, reason)
);
create index on usage_refused (refused_at);

-- Nine thousand records of the most that one may cost, a trillion credits, fit into a sum.
alter table usage_records add constraint usage_records_credits_max check (credits <= 1000000000000000) not valid;
