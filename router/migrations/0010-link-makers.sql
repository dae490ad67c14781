-- Who made a one-time link: it ends when they lose the right to. null: the operator, or its user by mail.
alter table invitations add column created_by uuid references users on delete cascade;
alter table password_resets add column created_by uuid references users on delete cascade;
create index invitations_by_maker on invitations (created_by) where created_by is not null;
create index password_resets_by_maker on password_resets (created_by) where created_by is not null;
