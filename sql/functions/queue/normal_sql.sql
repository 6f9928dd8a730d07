-- pgcombine.normal_sql(query) → text
-- A query as PostgreSQL writes it: equal for a view and for what the view was made of, also after a restore (which may
-- take two rounds of reading what was written). Null: the session can't know, since it is read-only or may make no
-- temporary view; none is left behind.
create or replace function pgcombine.normal_sql(query text)
returns text
language plpgsql strict
as $$
declare
    _query text := query;
begin
    for _round in 1 .. 3 loop
        begin
            execute format('create temporary view pgcombine_normal as %s', _query);
            raise exception '%', pg_get_viewdef('pg_temp.pgcombine_normal'::regclass); -- undoes the view
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
