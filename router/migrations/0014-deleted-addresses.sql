-- The usual address of a deleted user may be that of somebody else, from before such addresses were kept free.
alter table users drop constraint users_check;
alter table users add constraint users_deleted_check
  check (deleted_at is null or (blocked and email like id || '%@deleted.invalid'));
