-- pgcombine_internal.add_contribution(queue, source, rows, stream) → bigint
-- Adds rows to the contribution of a source, and enqueues them, folded by key. Returns the number of updates. The
-- caller has called open_contributions.
--   rows    a from item that has the queue's columns
--   stream  the query that replaced the contribution with its first batch, and that adds the rows
-- Tables written: those of replace_contribution.
-- Errors: PC030 something else has replaced the contribution since; those of replace_contribution.
create or replace function pgcombine_internal.add_contribution(queue text, source text, rows text, stream text)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _id constant bigint := pgcombine_internal.take_source(queue, source);
    _updates bigint;
begin
    perform pgcombine_internal.require(
        exists (select from pgcombine.contribution c where c.id = _id and c.stream = add_contribution.stream), 'PC030',
        format('query %s didn''t write the contribution of source "%s" to queue "%s"', stream, source, queue),
        'if another query has replaced it, stop one of them; if the source is new, start with a new checkpoint');
    execute pgcombine_internal.fill('with pgcombine_folded as materialized (
    select {keys}, {folds} from {rows} group by {keys}
), pgcombine_stored as (
    insert into {table} as c (pgcombine_source, {columns}) select $1, {columns} from pgcombine_folded
    order by {keys} -- in order, an index takes keys faster
    on conflict (pgcombine_source, {keys}) do update set {merged}
)
insert into {updates} ({columns}) select {columns} from pgcombine_folded',
        jsonb_build_object('keys', pgcombine_internal.column_list(queue, 'key'), 'rows', rows,
            'columns', pgcombine_internal.column_list(queue),
            'folds', pgcombine_internal.column_list(queue, 'value', '{fold} as {name}'),
            'table', format('pgcombine.%I', queue || '_contributions'),
            'updates', format('pgcombine.%I', queue || '_updates'),
            'merged', (
                select string_agg(format('%I = %s', q.name, pgcombine_internal.merge_expression(q, 'c', 'excluded')),
                    ', ' order by q.position)
                from pgcombine.queue_column q where q.queue = add_contribution.queue and q.role = 'value'))) using _id;
    get diagnostics _updates = row_count;
    return _updates;
end
$$;
