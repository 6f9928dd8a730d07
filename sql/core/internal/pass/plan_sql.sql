-- pgcombine_internal.plan_sql(plan [, tail, source, observed]) → text
-- Returns the statement of a planned pass. No other function makes it.
--   tail      further output, besides updates, keys, changes and the number of held updates
--   source    a relation with the queue's columns to take instead of the log: keys of a search
--   observed  whether the observers are part of it
-- The planner can't know that few updates are pending, since a table that fills and empties has no lasting statistics.
-- It would read all values to join some of them. So for few updates the statement looks up old values key by key
-- (offset 0 rules out other joins), and it writes them under a condition that the planner takes for selective
-- (num_nulls). Planner settings such as enable_hashjoin would also affect the statements of combiners and observers.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.plan_sql(plan pgcombine.plan, tail text default '', source text default null, observed boolean default true)
returns text
language plpgsql stable
as $$
declare
    _plan constant pgcombine.plan := plan_sql.plan;
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(_plan.queue);
    _log constant text := pgcombine_internal.log_sql(_plan.queue, _plan.tables, _plan.condition);
    _expires constant boolean := _plan.first_page is not null;
    _few constant boolean := _expires or coalesce(_plan.pending < 1000, false);
begin
    return pgcombine_internal.fill(case when plan_sql.observed and not _expires then _queue.pass
            else pgcombine_internal.generate_pass(_plan.queue, plan_sql.observed, _expires) end,
        jsonb_build_object(
            'updates', coalesce(plan_sql.source, case when _plan.held and not _expires then '(select * from pgcombine_taken where pgcombine_key is null) as updates' else _log end),
            'values', (pgcombine_internal.partition_tables(_plan.queue, _plan.bucket % _queue.partitions))[2],
            'tail', plan_sql.tail,
            'few_join', case when _few then ' offset 0' end,
            'few_write', case when _few then ' and num_nulls(c.pgcombine_row) = 0' end,
            'page', case when _expires then format('v.ctid >= ''(%s,0)'' and v.ctid < ''(%s,0)''', _plan.first_page, _plan.first_page + _plan.pages)
                || case when _queue.partitions < _queue.buckets then format(' and satisfies_hash_partition(%L::regclass, %s, %s, %s)',
                       format('pgcombine.%I', _plan.queue || '_values'), _queue.buckets, _plan.bucket, pgcombine_internal.column_list(_plan.queue, 'key'))
                   else '' end end,
            'most', _plan.most,
            'brace', '{',
            'held', case when _plan.held and not _expires then pgcombine_internal.fill(
$held$pgcombine_taken as materialized (
    select updates.*, pgcombine_held.pgcombine_key
    from {log} left join pgcombine.{held_keys} as pgcombine_held on {held_key}
), pgcombine_holding as (
    insert into pgcombine.{quarantine} (pgcombine_key, {columns}) select pgcombine_key, {columns} from pgcombine_taken where pgcombine_key is not null
), pgcombine_counted as (
    update pgcombine.quarantined_key k set updates = k.updates + h.updates
    from (select pgcombine_key, count(*) as updates from pgcombine_taken where pgcombine_key is not null group by pgcombine_key) h
    where k.id = h.pgcombine_key
), $held$,
                jsonb_build_object('log', _log, 'columns', pgcombine_internal.column_list(_plan.queue), 'held_key', pgcombine_internal.held_key(_plan.queue),
                    'quarantine', quote_ident(_plan.queue || '_quarantine'), 'held_keys', quote_ident(_plan.queue || '_quarantine_keys'))) end,
            'held_count', case when _plan.held and not _expires then ', (select count(*) from pgcombine_taken where pgcombine_key is not null) as held' else ', 0::bigint as held' end));
end
$$;
