-- pgcombine_internal.generate_pass(queue, observed [, expires]) → text
-- Returns the statement of passes over a queue's buckets, in which plan_sql fills in {updates}, {values}, {tail},
-- {few_join}, {few_write}, {held}, {held_count}, {page}, {most} and {brace}, which stands for any other brace.
--   observed  whether the observers are part of it
--   expires   whether it removes expired keys instead of combining updates (see plan_retain)
-- One statement has one snapshot. It folds the updates by key, joins the old values, writes the new ones, passes the
-- changes to the observers and counts. A key whose new values have expired is gone, as if delete_when held. The statement
-- that removes expired keys differs in where its rows come from: it leaves keys with pending or held updates to the pass
-- that takes these. Its condition is written in a form (not coalesce) that the planner takes for half of the rows whatever
-- the statistics, so that it joins many pending updates by hash.
-- An observer can read the parts before it. check_observer refuses their names, which begin with pgcombine_, so that they
-- hide no table of a user's.
-- Equal keys may look different (1 and 1.0). The changes show a key as it is stored, so that an observer which compares
-- keys as text sees an unbroken chain.
-- Rows are written in the order of the table's pages and of its index, so that each page is visited once. They are
-- written by ctid: if a rival pass has changed or deleted them since the snapshot, PostgreSQL raises 40001 under
-- repeatable read. An upsert would silently insert a deleted row again.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.generate_pass(queue text, observed boolean, expires boolean default false)
returns text
language plpgsql stable
as $$
declare
    _queue constant text := generate_pass.queue;
    _definition constant pgcombine.queue := pgcombine_internal.require_queue(_queue);
    _parts jsonb := jsonb_build_object(
        'keys', pgcombine_internal.column_list(_queue, 'key'),
        'stored_keys', pgcombine_internal.column_list(_queue, 'key', 'coalesce(v.{name}, u.{name}) as {name}'),
        'same_key', pgcombine_internal.column_list(_queue, 'key', 'v.{name} {equals} u.{name}', ' and '),
        'fold', pgcombine_internal.column_list(_queue, 'value', '{fold} as {name}'),
        'new_values', pgcombine_internal.column_list(_queue, 'value'),
        'old_values', pgcombine_internal.column_list(_queue, 'value', 'v.{name} as {old}'),
        'change_old', pgcombine_internal.column_list(_queue, 'value', '{old}'),
        'change_new', pgcombine_internal.column_list(_queue, 'value', 'case when not pgcombine_gone then {name} end as {new}'),
        'assign', pgcombine_internal.column_list(_queue, 'value', '{name} = c.{name}'),
        'source', pgcombine_internal.fold_source(_queue, chr(1)),
        'log', chr(1),
        'retain', coalesce(_definition.retain, 'true'), -- it may have gone since the step was planned
        'pending_key', pgcombine_internal.column_list(_queue, 'key', 'v.{name} {equals} updates.{name}', ' and '),
        'held_key', pgcombine_internal.column_list(_queue, 'key', 'pgcombine_held.pgcombine_{position} {equals} v.{name}', ' and '),
        'held_keys', quote_ident(_queue || '_quarantine_keys'),
        'seen', case when _definition.retain_silently then ' where (' || _definition.retain || ') is not false' end);
    _more jsonb;
begin
    select jsonb_build_object(
        'gone', coalesce(nullif(concat_ws(' or ', '(' || _definition.delete_when || ')',
            '(' || _definition.retain || ') is false'), ''), 'false'),
        'merge', string_agg(format('%s as %I', pgcombine_internal.merge_expression(c, 'v', 'u'), c.name), ', ' order by c.position),
        'changed', string_agg(pgcombine_internal.differ_expression(c.type, quote_ident('old_' || c.name), quote_ident('new_' || c.name)), ' or ' order by c.position),
        'differs', string_agg(pgcombine_internal.differ_expression(c.type, format('c.%I', 'old_' || c.name), format('c.%I', c.name)), ' or ' order by c.position))
    into _more
    from pgcombine.queue_column c where c.queue = _queue and c.role = 'value';
    _parts := _parts || _more;
    -- an observer that reads (select my_function(…) from changes) runs only if the outer query reads its rows
    select jsonb_build_object(
        'observers', coalesce(string_agg(format(E', pgcombine_observer_%s as materialized ( -- %s\n%s\n)', o.number,
            regexp_replace(o.observer, '[\n\r]', ' ', 'g'), o.statement), '' order by o.number), ''),
        'observed', coalesce(string_agg(format(E',\n       (select count(*) from pgcombine_observer_%s) as observer_%s', o.number, o.number), '' order by o.number)
            filter (where pgcombine_internal.reads(o.statement)), ''))
    into _more
    from (
        select row_number() over (order by o.position) as number, o.observer, o.statement
        from pgcombine.observer o
        where o.queue = _queue and o.language = 'sql' and generate_pass.observed) o;

    select jsonb_object_agg(p.key, case when p.key in ('source', 'log') then replace(e.value, chr(1), '{updates}') else e.value end) into _parts
    from jsonb_each_text(_parts || _more) p cross join lateral replace(p.value, '{', '{brace}') e (value);
    return pgcombine_internal.fill('with ' || case when generate_pass.expires then
$expired$pgcombine_folded as materialized (
    select v.ctid as pgcombine_row, 0 as pgcombine_updates, v.*
    from {values} v
    where {page} and not coalesce({retain}, true)
      and not exists (select from {log} where {pending_key})
      and not exists (select from pgcombine.{held_keys} as pgcombine_held where {held_key})
    limit {most}
), pgcombine_combined as (
    select {keys}, pgcombine_row, pgcombine_updates, {old_values}, {new_values}, true as pgcombine_gone from pgcombine_folded v
$expired$ else
$combined${held}pgcombine_folded as (
    select {keys}, {fold}, count(*) as pgcombine_updates
    from {source}
    group by {keys}
), pgcombine_combined as (
    select new.*, ({gone}) is true as pgcombine_gone
    from (
        select {stored_keys}, v.pgcombine_row, u.pgcombine_updates, {old_values}, {merge}
        from pgcombine_folded u left join lateral (
            select v.ctid as pgcombine_row, v.* from {values} v where {same_key}{few_join}
        ) v on true
    ) as new
$combined$ end ||
$pass$), pgcombine_removed as (
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
    select *
    from (select {keys}, {change_old}, {change_new} from pgcombine_combined{seen}) as change
    where {changed}
){observers}
select coalesce((select sum(pgcombine_updates) from pgcombine_folded), 0)::bigint as updates,
       (select count(*) from pgcombine_folded) as keys,
       (select count(*) from changes) as changes{held_count}{observed}{tail}$pass$, _parts);
end
$$;
