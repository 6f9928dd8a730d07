-- pgcombine_internal.log_sql(queue, tables, condition [, pages]) → text
-- Returns a from item that reads some segments under a condition, one row an update. Each update of a packed row is
-- tested by itself.
--   condition  on pgcombine_tx and the queue's columns
--   pages      on the rows' ctid
create or replace function pgcombine_internal.log_sql(queue text, tables text[], condition text, pages text default null)
returns text
language plpgsql stable
as $$
declare
    _columns constant text := pgcombine_internal.column_list(log_sql.queue);
    _segments integer; -- segments from this number on hold packed rows
    _sources text[] := '{}';
    _table text;
begin
    select case when q.packs then q.segments end into _segments from pgcombine.queue q where q.queue = log_sql.queue;
    foreach _table in array tables loop
        _sources := _sources || format('select %s, pgcombine_tx from %s where %s', _columns, _table, concat_ws(' and ', pages, condition));
        if _segments <= (regexp_match(_table, '_s(\d+)"?$'))[1]::integer then
            _sources := _sources || format('select %s, pgcombine_tx from (select %s, pgcombine_tx from %s%s) as packed where %s', _columns,
                pgcombine_internal.column_list(log_sql.queue, form => 'unnest(pgcombine_{position}) as {name}'), _table, ' where ' || pages, condition);
        end if;
    end loop;
    if cardinality(tables) = 0 then
        _sources := array[format('select %s, pgcombine_tx from pgcombine.%I where false', _columns, log_sql.queue || '_updates')];
    end if;
    return '(' || array_to_string(_sources, E'\n    union all\n    ') || ') as updates';
end
$$;
