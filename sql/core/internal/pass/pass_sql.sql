-- pgcombine_internal.pass_sql(queue, bucket, few [, tail, source, observed]) → text
-- Returns the statement of passes over a bucket. Its text is the same for each pass until the queue's definition
-- changes.
-- What a pass takes is in its parameters (see taken_sql): $1 whether keys are held in quarantine, $2 and $3 the pages
-- whose expired keys it removes, $4 and $5 the bucket's marks and their mask, $6 the new mark, $7 the segments that it
-- reads, $8 and $9 the slice of keys.
--   queue     the queue's row, with the parts that pass_parts has made
--   few       the statement for few updates. The planner can't know that few are pending, since a table that fills and
--             empties has no lasting statistics. It would read all values to join some of them. So old values are
--             looked up key by key (offset 0 rules out other joins), and are written under a condition that the planner
--             takes for selective (num_nulls). Settings such as enable_hashjoin would affect combiners and observers,
--             too
--   tail      further output, besides updates, keys, changes and the numbers of held updates and of expired keys
--   source    a query of the queue's columns to take instead of the log: keys of a search. From $4 on the
--             parameters are the query's own
--   observed  whether the observers are part of it
-- One statement has one snapshot. It folds the updates by key, joins the old values, writes the new ones, passes the
-- changes to the observers and counts. A key whose new values have expired is gone, as if delete_when held. The expired
-- keys of the pages are such keys, too, but for those with pending or held updates. Their condition is written in a
-- form (not coalesce) that the planner takes for half of the rows whatever the statistics, so that it joins many by
-- hash. An observer can read the parts before it. check_observer refuses their names, which begin with pgcombine_, so
-- that they hide no table of a user's. Rows are written in the order of the table's pages and of its index, so that
-- each page is visited once. They are written by ctid: if a rival pass has changed or deleted them since the snapshot,
-- PostgreSQL raises 40001 under repeatable read. An upsert would silently insert a deleted row again.
create or replace function pgcombine_internal.pass_sql(queue pgcombine.queue, bucket integer, few boolean,
    tail text default '', source text default null, observed boolean default true)
returns text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pass_sql.queue;
    _parts constant jsonb := _queue.pass;
    _log text := pass_sql.source;
begin
    if _log is null then
        select string_agg(format('select %s, %s from %s where %s', _parts ->> 'keys', _parts ->> 'new_values', s.name,
            pgcombine_internal.taken_sql(_queue, bucket, s.place::integer)), E'\n    union all\n    ' order by s.place)
        into _log
        from unnest(pgcombine_internal.segment_tables(_queue.queue, bucket % _queue.partitions))
             with ordinality s (name, place);
    end if;
    return pgcombine_internal.fill(
$pass$with pgcombine_updates as not materialized (
    {log}
), pgcombine_holding as (
    insert into {quarantine} (pgcombine_key, {keys}, {new_values})
    select pgcombine_held.pgcombine_key, {keys}, {new_values}
    from pgcombine_updates as updates join {held_keys} as pgcombine_held on {held_key}
    where $1
    returning pgcombine_key
), pgcombine_counted as (
    update pgcombine.quarantined_key k set updates = k.updates + h.updates
    from (select pgcombine_key, count(*) as updates from pgcombine_holding group by pgcombine_key) h
    where k.id = h.pgcombine_key
), pgcombine_folded as (
    select {keys}, {folds}, count(*) as pgcombine_updates
    from {source}
    where not ($1 and exists (select from {held_keys} as pgcombine_held where {held_key}))
    group by {keys}
), pgcombine_combined as (
    select new.*, ({gone}) is true as pgcombine_gone
    from (
        select {combined}
        from pgcombine_folded u left join lateral (
            select v.ctid as pgcombine_row, v.* from {values} v where {same_key}{few_join}
        ) v on true
    ) as new
$pass$ || case when _parts ->> 'retained' is null then '' else
$expired$    union all
    (select {keys}, v.ctid, 0, {new_values}, {new_values}, true
    from {values} v
    where v.ctid >= $2 and v.ctid < $3 and {expired}
      and not exists (select from pgcombine_folded u where {same_key})
      and not exists (select from {held_keys} as pgcombine_held where {held_key})
    limit 10000)
$expired$ end || $pass$), pgcombine_removed as (
    delete from {values} v using pgcombine_combined c
    where v.ctid = c.pgcombine_row and c.pgcombine_gone{few_write}
), pgcombine_updated as (
    update {values} v set {assign}
    from (
        select * from pgcombine_combined c
        where not c.pgcombine_gone and ({differs}){few_write}
        order by c.pgcombine_row
    ) c
    where v.ctid = c.pgcombine_row
), pgcombine_inserted as (
    insert into {values} ({keys}, {new_values})
    select {keys}, {new_values} from pgcombine_combined c where c.pgcombine_row is null and not c.pgcombine_gone
    order by {keys}
    on conflict do nothing
), changes as (
    {changes}
){observers}
select coalesce((select sum(pgcombine_updates) from pgcombine_folded), 0)::bigint as updates,
       (select count(*) from pgcombine_folded) as keys,
       (select count(*) from changes) as changes,
       (select count(*) from pgcombine_holding) as held,
       (select count(*) from pgcombine_combined where pgcombine_updates = 0) as expired{output}$pass$,
        _parts || jsonb_build_object(
            'log', _log,
            'values', pgcombine_internal.values_table(_queue.queue, bucket % _queue.partitions),
            'expired', format('not coalesce(%s, true)%s', _parts ->> 'retained',
                case when _queue.partitions < _queue.buckets then
                    format(' and satisfies_hash_partition(%L::regclass::oid, %s, %s, %s)',
                        format('pgcombine.%I', _queue.queue || '_values'), _queue.buckets, bucket,
                        _parts ->> 'keys') end),
            'few_join', case when few then ' offset 0' end,
            'few_write', case when few then ' and num_nulls(c.pgcombine_row) = 0' end,
            'observers', case when observed then _parts ->> 'observers' end,
            'output', case when observed then _parts ->> 'counts' else '' end || tail));
end
$$;
