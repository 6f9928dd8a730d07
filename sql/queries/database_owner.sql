-- Makes an ordinary role the owner of the current database. The embedded server runs this as its superuser, so that
-- functions with their owner's rights don't run as a superuser. The role may see the sessions of other roles, so that
-- workers can truncate segments of a queue's log.
-- The settings pgcombine.owner and pgcombine.owner_password name the role and its password. The statement creates the
-- role if it is missing.
do $$
declare
    _owner constant name := current_setting('pgcombine.owner');
begin
    if not exists (select from pg_roles r where r.rolname = _owner) then
        execute format('create role %I login createdb in role pg_checkpoint, pg_read_all_stats', _owner);
    end if;
    execute format('alter database %I owner to %I', current_database(), _owner);
    execute format('alter role %I password %L', _owner, current_setting('pgcombine.owner_password'));
end
$$;
