-- Usage records and their sums. Nothing here refers to the accounts' tables, so that usage can move to a server of its own.

-- One record per attempt of a request. Partitioned by the day of the request id (a UUIDv7, made at acceptance), because a
-- unique constraint must contain the partition key. The days are made by the router; there is no default partition.
create table usage_records (
  request_id uuid not null,
  attempt smallint not null check (attempt >= 1),
  account_id uuid not null,
  user_id uuid not null,
  key_id uuid not null,
  model text not null,
  node text not null,
  period_start timestamptz not null,         -- -infinity: accepted outside any billing period
  day date not null,                         -- in Germany
  prompt_tokens integer not null check (prompt_tokens >= 0),
  completion_tokens integer not null check (completion_tokens >= 0),
  reasoning_tokens integer check (reasoning_tokens >= 0),
  cached_tokens integer check (cached_tokens >= 0),
  factor bigint not null check (factor >= 0),
  credits bigint not null check (credits = (prompt_tokens::bigint + completion_tokens) * factor),
  source text not null check (source in ('engine', 'counted')),
  outcome text not null check (outcome in ('finished', 'client-ended', 'limit-ended', 'broken')),
  duration_ms integer not null check (duration_ms >= 0),
  first_token_ms integer check (first_token_ms >= 0),
  primary key (request_id, attempt),         -- whoever it is billed to
  check (outcome <> 'broken' or (prompt_tokens = 0 and completion_tokens = 0))
) partition by range (request_id);

-- Running sums per billing period, of the account and of each of its users, keys and models. Moved with the records.
create table usage_totals (
  account_id uuid not null,
  period_start timestamptz not null,
  scope text not null check (scope in ('account', 'user', 'key', 'model')),
  subject text not null,                     -- '' for the account itself
  requests bigint not null check (requests >= 0),
  prompt_tokens bigint not null check (prompt_tokens >= 0),
  completion_tokens bigint not null check (completion_tokens >= 0),
  credits bigint not null check (credits >= 0),
  primary key (account_id, period_start, scope, subject)
) with (fillfactor = 80);

-- The same by German day, fine enough for every report.
create table usage_days (
  account_id uuid not null,
  day date not null,
  period_start timestamptz not null,
  user_id uuid not null,
  key_id uuid not null,
  model text not null,
  requests bigint not null check (requests >= 0),
  prompt_tokens bigint not null check (prompt_tokens >= 0),
  completion_tokens bigint not null check (completion_tokens >= 0),
  credits bigint not null check (credits >= 0),
  primary key (account_id, day, period_start, user_id, key_id, model)
) with (fillfactor = 80);
