-- pgcombine_internal.generate_rollup(rollup)
-- Makes a rollup's view, the query of its computed columns and its trigger function. The function belongs to the owner
-- of the source and runs with that role's rights, so writers of the source need no right on the queue.
-- This owner gets the right to enqueue, unless that role may insert already. A former owner loses a granted one.
-- Tables written: pgcombine.queue, granted_right.
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
    _function text;
    _body text;
    _owner name;
    _former name;
    _create boolean;
    _schema constant text := 'pgcombine_internal';
begin
    _rollup := pgcombine_internal.get_rollup(generate_rollup.rollup);
    perform pgcombine_internal.require_source(_rollup);
    perform pgcombine_internal.replace_view(_rollup.queue, pgcombine_internal.rollup_view(_rollup));
    execute format('comment on view pgcombine.%I is %L', _rollup.queue,
        format('%s by %s, exact in each snapshot.', array_to_string(_rollup.value, ', '),
            array_to_string(_rollup.key, ', ')));
    _computed := nullif(_rollup.definition -> 'computed', 'null') || jsonb_build_object('query',
        pgcombine_internal.rollup_computed(_rollup));
    update pgcombine.queue q set computed = _computed where q.queue = _rollup.queue
        and q.computed is distinct from _computed;
    if found then
        perform pgcombine_internal.regenerate_pass(_rollup.queue);
    end if;

    _body := pgcombine_internal.rollup_trigger(_rollup);
    _function := format('pgcombine_internal.%I()', _rollup.queue || '_rollup');
    select pg_get_userbyid(c.relowner) into _owner from pg_class c where c.oid = _rollup.source;
    execute format('create or replace function %s returns trigger language plpgsql security definer
        set search_path = pg_catalog, pg_temp %s as %L', _function,
        -- only then, since a setting costs each statement of a writer time
        case when strpos(_body, E'\\') > 0 then 'set standard_conforming_strings = on' end, _body);
    execute format('revoke execute on function %s from public', _function); -- or any role could make triggers with it
    if not has_any_column_privilege(_owner, format('pgcombine.%I', _rollup.queue || '_updates'), 'insert') then
        perform pgcombine.grant_right('enqueue', _owner, _rollup.queue);
    end if;
    select pg_get_userbyid(p.proowner) into _former from pg_proc p where p.oid = _function::regprocedure;
    if _former <> _owner then
        _create := not has_schema_privilege(_owner, _schema, 'create');
        if _create then -- PostgreSQL makes a role the owner only if the role may create objects in the schema
            execute format('grant create on schema %I to %I', _schema, _owner);
        end if;
        execute format('grant execute on function %s to %I', _function, current_user);
        execute format('alter function %s owner to %I', _function, _owner);
        perform pgcombine.revoke_right('enqueue', g.role, _rollup.queue)
        from pgcombine.granted_right g
        where g."right" = 'enqueue' and g.subject = _rollup.queue and g.role = _former;
        if _create then
            execute format('revoke create on schema %I from %I', _schema, _owner);
        end if;
    end if;
end
$$;
