-- An attempt whose answer its client did not get is void: it costs nothing. Its row keeps what had been counted for it, if
-- its record came first; otherwise the row takes the place of that record, which then changes nothing when it comes.
alter table usage_records
  drop constraint usage_records_outcome_check,
  drop constraint usage_records_check1,
  add column voided_prompt_tokens integer,
  add column voided_completion_tokens integer,
  add column voided_credits bigint,
  add constraint usage_records_outcome_check
    check (outcome in ('finished', 'client-ended', 'limit-ended', 'broken', 'void')),
  add constraint usage_records_free_check
    check (outcome not in ('broken', 'void') or (prompt_tokens = 0 and completion_tokens = 0)),
  add constraint usage_records_voided_check
    check (outcome = 'void' or (voided_prompt_tokens is null and voided_completion_tokens is null and voided_credits is null));
