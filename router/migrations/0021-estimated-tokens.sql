-- Tokens that no engine reported and nobody could count, so that a node estimated them: a part of prompt_tokens and
-- completion_tokens, in records and in their sums.
alter table usage_records
  add column estimated_tokens integer not null default 0 check (estimated_tokens >= 0),
  add column voided_estimated_tokens integer;
alter table usage_totals add column estimated_tokens bigint not null default 0 check (estimated_tokens >= 0);
alter table usage_days add column estimated_tokens bigint not null default 0 check (estimated_tokens >= 0);
