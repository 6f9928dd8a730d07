-- pgcombine_internal.generate_rollup(rollup)
-- Makes a rollup's view, the query of its computed columns, and two functions that belong to the owner of the source
-- and run with that role's rights:
--   <queue>_rollup  the trigger function, so that writers of the source need no right on the queue
--   <queue>_owned   runs queries of the source for functions of the schema's owner (see rollup_owned). The owner of the
--                   source may alter the function, but not its body, which refuses to run with other rights
-- The owner of the source gets the right to enqueue, unless that role may insert already. A former owner loses a
-- granted one.
-- Tables written: pgcombine.queue.
-- Errors: those of require_source; 42501 the caller lacks the rights of the source's owner.
create or replace function pgcombine_internal.generate_rollup(rollup text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _rollup pgcombine.rollup;
    _computed jsonb;
    _function record;
    _owner name;
    _former name;
    _create boolean;
    _schema constant text := 'pgcombine_internal';
begin
    _rollup := pgcombine_internal.get_rollup(rollup);
    perform pgcombine_internal.require_source(_rollup);
    perform pgcombine_internal.replace_view(_rollup.queue, pgcombine_internal.rollup_view(_rollup));
    execute format('comment on view pgcombine.%I is %L', _rollup.queue,
        format('%s by %s. A join reads all keys: %3$s_get reads a few, %3$s_get_many many.',
            array_to_string(_rollup.value, ', '), array_to_string(_rollup.key, ', '), _rollup.queue));
    _computed := pgcombine_internal.rollup_pass(_rollup);
    update pgcombine.queue q set computed = _computed where q.queue = _rollup.queue
        and q.computed is distinct from _computed;
    if found then
        perform pgcombine_internal.regenerate_pass(_rollup.queue);
    end if;

    select pg_get_userbyid(c.relowner) into _owner from pg_class c where c.oid = _rollup.source;
    if not has_any_column_privilege(_owner, format('pgcombine.%I', _rollup.queue || '_updates'), 'insert') then
        perform pgcombine.grant_right('enqueue', _owner, _rollup.queue);
    end if;

    for _function in select * from pgcombine_internal.rollup_functions(_rollup) loop
        -- undoes what an owner has altered, too
        execute format('create or replace function %I.%I%s language plpgsql security definer %s as %L', _schema,
            _function.name, _function.parameters, _function.options, _function.body);
        execute format('revoke execute on function %I.%I from public', _schema, _function.name);
        select pg_get_userbyid(p.proowner) into _former
        from pg_proc p where p.pronamespace = _schema::regnamespace and p.proname = _function.name;
        continue when _former = _owner;
        _create := not has_schema_privilege(_owner, _schema, 'create');
        if _create then -- PostgreSQL makes a role the owner only if the role may create objects in the schema
            execute format('grant create on schema %I to %I', _schema, _owner);
        end if;
        execute format('grant execute on function %I.%I to %I, %I', _schema, _function.name, current_user, (
            select pg_get_userbyid(n.nspowner) from pg_namespace n where n.nspname = _schema));
        execute format('alter function %I.%I owner to %I', _schema, _function.name, _owner);
        if _create then
            execute format('revoke create on schema %I from %I', _schema, _owner);
        end if;
        perform pgcombine.revoke_right('enqueue', g.role, _rollup.queue)
        from pgcombine.rights g
        where g."right" = 'enqueue' and g.queue = _rollup.queue and g.role = _former;
    end loop;
end
$$;
