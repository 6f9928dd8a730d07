-- pgcombine_internal.open_combiner(plan [, source]) → refcursor
-- Opens, for a queue with Python combiners, the cursor pgcombine_combiner over the updates of a planned pass in key
-- order. It also makes the temporary table pgcombine_combined.
-- The worker writes one update a key into that table, in which each Python column has its final value, computed from
-- the old value, too. The table is then the source of the pass's statement.
-- Columns: the number of the key; the key columns; each Python column, old and in the update; then, as text, the key
-- columns and the other value columns, folded.
--   source  see plan_sql
-- Call it under repeatable read, so that its statement and the pass's share a snapshot.
-- Errors: PC001 unknown queue; P0001 the isolation level is lower than repeatable read; 42501 the caller may not make
-- temporary tables.
create or replace function pgcombine_internal.open_combiner(plan pgcombine.plan, source text default null)
returns refcursor
language plpgsql
as $$
declare
    _combiner refcursor := 'pgcombine_combiner';
    _plan constant pgcombine.plan := open_combiner.plan;
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(_plan.queue);
    _parts jsonb;
begin
    if current_setting('transaction_isolation') not in ('repeatable read', 'serializable') then
        raise exception 'Python combiners need a transaction under repeatable read';
    end if;
    perform pgcombine_internal.require_temporary();
    if to_regclass('pg_temp.pgcombine_combined') is not null then
        drop table pg_temp.pgcombine_combined;
    end if;
    execute format('create temporary table pgcombine_combined on commit drop as select %s from pgcombine.%I where false',
        pgcombine_internal.column_list(_plan.queue), _plan.queue || '_values');
    select jsonb_build_object(
        'updates', coalesce(open_combiner.source, pgcombine_internal.log_sql(_plan.queue, _plan.tables, _plan.condition)
            || case when _plan.held then ' where ' || pgcombine_internal.not_held(_plan.queue) else '' end),
        'folded', string_agg(case c.role when 'key' then quote_ident(c.name) else format('%s as %I', pgcombine_internal.fold_expression(c), c.name) end,
            ', ' order by c.position) filter (where c.combiner is distinct from 'python'),
        'source', pgcombine_internal.fold_source(_plan.queue, 't'),
        'folded_keys', pgcombine_internal.column_list(_plan.queue, 'key'),
        'keys', pgcombine_internal.column_list(_plan.queue, 'key', 't.{name}'),
        'python', string_agg(format('v.%I, t.%I', c.name, c.name), ', ' order by c.position) filter (where c.combiner = 'python'),
        'texts', string_agg(format('f.%I::text', c.name), ', ' order by c.position) filter (where c.combiner is distinct from 'python'),
        'same_folded', pgcombine_internal.column_list(_plan.queue, 'key', 't.{name} {equals} f.{name}', ' and '),
        'values', (pgcombine_internal.partition_tables(_plan.queue, _plan.bucket % _queue.partitions))[2],
        'same_value', pgcombine_internal.column_list(_plan.queue, 'key', 't.{name} {equals} v.{name}', ' and '))
    into _parts
    from pgcombine.queue_column c where c.queue = _plan.queue;
    open _combiner no scroll for execute pgcombine_internal.fill(
        'with t as materialized (
             select * from {updates}
         ), f as (
             select {folded} from {source} group by {folded_keys}
         )
         select dense_rank() over (order by {keys}), {keys}, {python}, {texts}
         from t join f on {same_folded} left join {values} v on {same_value}
         order by 1', _parts);
    return _combiner;
end
$$;
