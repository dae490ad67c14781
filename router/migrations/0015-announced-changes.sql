-- The entries of the changelog that accounts were told of, as [when, models, hash of the texts], in one row. No row:
-- nobody has looked yet, so that an update of the router announces nothing that stood there before.
create table announced_changes (
  told jsonb not null
);

alter table notices
  drop constraint notices_kind_check,
  add constraint notices_kind_check check (kind in ('quota-75', 'quota-90', 'quota-100', 'key-limit', 'user-limit',
    'key-expiring', 'trial-ending', 'model-status', 'model-factor', 'model-change'));
