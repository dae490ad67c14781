-- What people call themselves. null: their e-mail address is shown.
alter table users
  add column name text check (name = btrim(name) and length(name) between 1 and 200 and name !~ '[[:cntrl:]]');
