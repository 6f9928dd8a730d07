-- pgcombine_internal.log_sql(queue, tables, condition [, pages]) → text
-- Returns a from item that reads some segments under a condition.
--   condition  a condition on pgcombine_tx and the queue's columns
--   pages      a condition on the rows' ctid
create or replace function pgcombine_internal.log_sql(queue text, tables text[], condition text,
    pages text default null)
returns text
language sql stable
as $$
    select '(' || coalesce(
        (select string_agg(format('select %s, pgcombine_tx from %s where %s', c.columns, t.name,
                concat_ws(' and ', log_sql.pages, log_sql.condition)), E'\n    union all\n    ' order by t.place)
         from unnest(log_sql.tables) with ordinality t (name, place)),
        format('select %s, pgcombine_tx from pgcombine.%I where false', c.columns, log_sql.queue || '_updates')
    ) || ') as updates'
    from pgcombine_internal.column_list(log_sql.queue) c (columns)
$$;
