-- pgcombine_internal.rollup_owned(rollup, query [, columns]) → text
-- Returns a query with the rows of a query of a rollup's source, which <queue>_owned runs (see generate_rollup). A null
-- query gives null.
-- PostgreSQL calls functions of a table's indexes and policies when it plans a query of the table, so only the table's
-- owner may do this: another role would run the owner's code with its own rights.
--   columns  names of the query's columns, in the queue's order; null: all columns of the queue
create or replace function pgcombine_internal.rollup_owned(rollup pgcombine.rollup, query text,
    columns text[] default null)
returns text
language sql stable
as $$
    select case when query is not null then format(
        'select * from pgcombine_internal.%I(%L) as pgcombine_owned (%s)', (rollup).queue || '_owned',
        format('select %s from (%s) as pgcombine_rows',
            string_agg(format('%I::%s', c.name, c.type), ', ' order by c.position), query),
        string_agg(format('%I %s', c.name, c.type) || coalesce(' collate ' || c.collation, ''), ', '
            order by c.position)) end
    from pgcombine.queue_column c
    where c.queue = (rollup).queue and (columns is null or c.name = any (columns))
$$;
