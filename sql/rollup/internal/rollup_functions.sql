-- pgcombine_internal.rollup_functions(rollup) → (name, parameters, options, body), a row for each function
-- Returns the two functions that generate_rollup makes.
-- Errors: 42501 <queue>_owned was altered and doesn't run with the rights of the source's owner.
create or replace function pgcombine_internal.rollup_functions(rollup pgcombine.rollup)
returns table (name text, parameters text, options text, body text)
language sql stable
as $$
    select (rollup).queue || '_rollup', '() returns trigger',
        'set search_path = pg_catalog, pg_temp', pgcombine_internal.rollup_trigger(rollup)
    union all
    -- stable: the query sees the snapshot of the statement that calls the function
    select (rollup).queue || '_owned', '(statement text) returns setof record',
        'stable set search_path = pg_catalog, pg_temp set row_security = off', format($body$
begin
    if current_user operator(pg_catalog.<>) %L
        or pg_catalog.current_setting('search_path') operator(pg_catalog.<>) 'pg_catalog, pg_temp' -- see caller
    then
        raise exception 'the function was altered' using errcode = '42501', hint = 'run pgcombine db upgrade';
    end if;
    begin
        return query execute statement;
        raise sqlstate 'PC099'; -- the rollback undoes settings of the session that code of the owner has changed
    exception
        when sqlstate 'PC099' then perform pgcombine_internal.deallocate_new();
        when others or query_canceled or assert_failure then
            perform pgcombine_internal.deallocate_new();
            raise;
    end;
end
$body$, pg_get_userbyid(c.relowner))
    from pg_class c where c.oid = (rollup).source
$$;
