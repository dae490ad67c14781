-- How long a free trial lasts that begins under these terms, in days. A trial that runs has its end in `subscriptions`.

alter table package_terms add column trial_days integer not null default 30 check (trial_days > 0);
