-- Single requests, for the people of an account. Usage records have the billed ones. Both indexes are read backwards.
create index usage_records_by_account on usage_records (account_id, request_id);
create index usage_records_by_user on usage_records (user_id, request_id);

-- Requests of known keys that got no answer: refused ones, and those whose client left before. A request that was billed
-- anyway (a timeout) has a usage record, too. No content, and no foreign keys, as usage.
create table unanswered_requests (
  request_id uuid primary key,
  account_id uuid not null,
  user_id uuid not null,
  key_id uuid not null,
  model text,                                -- null: not known when it ended
  code text,                                 -- why it was refused; null: its client left
  status smallint not null,                  -- 0: none was sent
  duration_ms integer not null check (duration_ms >= 0),
  requests integer not null check (requests >= 1) -- from this one on: an account that is refused all the time gets sums
);
create index unanswered_requests_by_account on unanswered_requests (account_id, request_id);
create index unanswered_requests_by_user on unanswered_requests (user_id, request_id);
