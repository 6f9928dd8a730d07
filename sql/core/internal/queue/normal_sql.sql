-- pgcombine_internal.normal_sql(query) → text
-- Returns a query in PostgreSQL's own wording, so that a view can be compared with the query that made it. The function
-- makes a view of the query and reads PostgreSQL's wording back, three times: after a restore PostgreSQL may change the
-- wording in the first two rounds. Null: the session is read-only, or lacks the right to create a temporary view.
create or replace function pgcombine_internal.normal_sql(query text)
returns text
language plpgsql strict
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _query text := query;
begin
    for _round in 1 .. 3 loop
        begin
            execute format('create temporary view pgcombine_normal as %s', _query);
            raise exception '%', pg_get_viewdef('pg_temp.pgcombine_normal'::regclass); -- the error rolls the view back
        exception
            when raise_exception then
                _query := rtrim(sqlerrm, ';');
            when read_only_sql_transaction or insufficient_privilege then
                return null;
        end;
    end loop;
    return _query;
end
$$;
