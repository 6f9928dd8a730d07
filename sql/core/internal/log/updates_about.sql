-- pgcombine_internal.updates_about(queue, tables) → bigint
-- Estimates the number of updates in some segments, including combined ones. The function counts the updates on up to
-- four pages of each segment, and assumes that every page of the segment is as full as the fullest of these.
create or replace function pgcombine_internal.updates_about(queue text, tables text[])
returns bigint
language plpgsql stable
as $$
declare
    _table text;
    _pages bigint;
    _most bigint;
    _about bigint := 0;
begin
    foreach _table in array tables loop
        _pages := pg_relation_size(_table::regclass) / current_setting('block_size')::bigint;
        execute (
            select format('select max(n) from (%s) s (n)',
                string_agg(format('select count(*) from %s where ctid >= ''(%s,0)'' and ctid < ''(%s,0)''', _table, p,
                    p + 1), ' union all '))
            from (select distinct _pages * k / 4 from generate_series(0, 3) k) s (p))
        into _most;
        _about := _about + _pages * coalesce(_most, 0);
    end loop;
    return _about;
end
$$;
