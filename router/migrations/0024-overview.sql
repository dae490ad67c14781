-- The highest request rates of an account by hour, for the gauges of the overview. Rows live for a day.
create table limit_peaks (
  account_id uuid not null,
  hour timestamptz not null,
  per_minute integer not null check (per_minute >= 0),
  parallel integer not null check (parallel >= 0),
  primary key (account_id, hour)
) with (fillfactor = 80);
create index limit_peaks_by_hour on limit_peaks (hour);

-- Whether a person has done or hidden the first steps. People who are here already know their way.
alter table users add column checklist_hidden boolean not null default true;
alter table users alter column checklist_hidden set default false;
