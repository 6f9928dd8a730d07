-- pgcombine_internal.watch_ddl()
-- Makes the event triggers that follow changes of rollups' sources (see follow_ddl, follow_drop). PostgreSQL permits
-- that to superusers, and some services to their administrator's role. For other callers the function does nothing;
-- verify then names what has changed. The function also does nothing if follow_ddl belongs neither to the caller nor to
-- a superuser.
create or replace function pgcombine_internal.watch_ddl()
returns void
language plpgsql
as $$
begin
    -- statements of all roles run the functions, so their owner must not gain a superuser's rights by replacing them
    if not exists (
        select from pg_proc p join pg_roles o on o.oid = p.proowner
        where p.oid = 'pgcombine_internal.follow_ddl()'::regprocedure and (o.rolsuper or o.rolname = current_user))
    then
        return;
    end if;
    if not exists (select from pg_event_trigger t where t.evtname = 'pgcombine_follow_ddl') then
        create event trigger pgcombine_follow_ddl on ddl_command_end when tag in ('CREATE SCHEMA', 'CREATE TABLE',
                'ALTER AGGREGATE', 'ALTER COLLATION', 'ALTER DOMAIN', 'ALTER EXTENSION', 'ALTER FUNCTION',
                'ALTER OPERATOR', 'ALTER ROUTINE', 'ALTER SCHEMA', 'ALTER TABLE', 'ALTER TEXT SEARCH CONFIGURATION',
                'ALTER TEXT SEARCH DICTIONARY', 'ALTER TYPE')
            execute function pgcombine_internal.follow_ddl();
        create event trigger pgcombine_follow_drop on sql_drop when tag in ('ALTER TABLE', 'DROP AGGREGATE',
                'DROP COLLATION', 'DROP DOMAIN', 'DROP EXTENSION', 'DROP FUNCTION', 'DROP OPERATOR', 'DROP OWNED',
                'DROP ROUTINE', 'DROP SCHEMA', 'DROP TABLE', 'DROP TEXT SEARCH CONFIGURATION', 'DROP TYPE', 'DROP VIEW')
            execute function pgcombine_internal.follow_drop();
    end if;
exception when insufficient_privilege then null;
end
$$;
