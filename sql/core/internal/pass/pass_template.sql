-- pgcombine_internal.pass_template(queue [, source, observed]) → text
-- Returns the statement of passes over a queue's buckets. It depends only on the queue's definition. regenerate_pass
-- stores it in pgcombine.queue, and pass_sql makes a bucket's statement from it.
--   source    a query of the queue's columns that replaces the log, for a search for failing keys. $4 and the following
--             parameters are those of the query
--   observed  whether the statement contains the observers
-- The statement's parameters (plan_pass chooses them; taken_sql has the condition of $4 to $9):
--   $1  boolean          whether the queue has quarantined keys, whose updates go into the quarantine
--   $2  tid              expired keys are removed from this ctid on
--   $3  tid              ... and before this one; equal to $2: none
--   $4  txid_snapshot[]  the bucket's marks
--   $5  bigint           ... and their range_mask (see bucket_marks)
--   $6  txid_snapshot    the new mark
--   $7  boolean[]        whether the pass reads the segment, for each segment
--   $8  bigint           the range_mask of the keys that the pass takes; 0: all keys
--   $9  bigint           ... and their hash range
-- One statement has one snapshot. The statement folds the updates by key, looks up the old values, writes the new ones,
-- passes the changes and the folded updates (arrived) to the observers, and counts combined updates, their keys,
-- changes, quarantined updates and removed expired keys. A part that only observers read costs nothing without them.
-- A key whose new values have expired is deleted, as if delete_when held. Up to 10000 expired keys between $2 and $3
-- are deleted, too, but no quarantined ones, and none whose updates the pass takes.
-- The planner can't know how many updates are pending, since a table that fills and empties has no lasting statistics.
-- So the statement fixes the plan, which suits one update and a million: old values are looked up key by key (offset 0
-- rules out other joins) in the order of the index, as new ones are inserted, and written by ctid in the order of the
-- pages, under a condition that the planner takes for selective (num_nulls). Settings such as enable_hashjoin would
-- also affect combiners and observers.
-- If another pass has changed or deleted a row since the snapshot, PostgreSQL raises 40001 under repeatable read. If
-- another pass has inserted the key, PostgreSQL raises 23505, and run_pass 40001. (A clause on conflict would cost a
-- quarter of a pass over new keys.) Equal keys may look different (1 and 1.0). The changes show a key as it is stored.
-- An observer that only reads (select my_function(…) from changes) runs only if the outer query reads its rows, so the
-- outer query counts them. Such an observer is a select, values or table, perhaps after comments, in parentheses or
-- after a with clause. A statement that begins with a with clause counts as writing if it has the word insert, update,
-- delete or merge. If the word is only a name or in a string, add_observer refuses the statement. The names of the
-- parts before the observers, except changes and arrived, begin with pgcombine_, so that they hide no table of a user.
-- Columns that pgcombine.queue.computed names aren't combined but computed, for the keys that meet a condition:
--   columns  names of value columns
--   needs    the condition, over v, the key's old values, and u, its folded updates. Null: all keys meet it
--   query    a query of the key columns and these columns that reads the keys from pgcombine_touched. It has the
--            snapshot of the statement. A key that its result lacks gets nulls
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.pass_template(queue text, source text default null,
    observed boolean default true)
returns text
language plpgsql stable
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(pass_template.queue);
    _name constant text := _queue.queue;
    _keys constant text := pgcombine_internal.column_list(_name, 'key');
    _new constant text := pgcombine_internal.column_list(_name, 'value');
    _bucket constant text := '{pgcombine_bucket}';
    _computed constant jsonb := _queue.computed;
    _old constant text := 'left join lateral (
            select v.ctid as pgcombine_row, v.* from {values} v where {same_key} offset 0
        ) v on true';
    _parts jsonb;
begin
    select jsonb_build_object(
        'keys', _keys,
        'new_values', _new,
        'log', coalesce(pass_template.source, (
            select string_agg(format('select %s, %s from %s where %s', _keys, _new,
                'pgcombine.' || _name || '_updates_b{pgcombine_partition}_s' || s,
                pgcombine_internal.taken_sql(_name, _bucket, s)), E'\n    union all\n    ' order by s)
            from generate_series(0, _queue.segments - 1) s)),
        'values', 'pgcombine.' || _name || '_values_b{pgcombine_partition}',
        'quarantine', format('pgcombine.%I', _name || '_quarantine'),
        'quarantined_keys', pgcombine_internal.quarantined_keys(_name),
        'key_is_quarantined', pgcombine_internal.key_is_quarantined(_name),
        'same_key', pgcombine_internal.column_list(_name, 'key', 'v.{name} {equals} u.{name}', ' and '),
        'source', pgcombine_internal.fold_source(_name, 'pgcombine_updates as updates'),
        'folds', pgcombine_internal.column_list(_name, 'value', '{fold} as {name}'),
        'combined', concat_ws(', ',
            pgcombine_internal.column_list(_name, 'key', 'coalesce(v.{name}, u.{name}) as {name}'),
            'v.pgcombine_row, u.pgcombine_updates',
            pgcombine_internal.column_list(_name, 'value', 'v.{name} as {old}'),
            string_agg(format(case when _computed -> 'columns' ? c.name
                    then 'case when d.pgcombine_touched then d.%2$I else %1$s end as %2$I' else '%s as %I' end,
                pgcombine_internal.merge_expression(c, 'v', 'u'), c.name), ', ' order by c.position)),
        'gone', coalesce(nullif(concat_ws(' or ',
            '(' || _queue.delete_when || ')', '(' || _queue.expire_when || ')'), ''), 'false'),
        'expired', format('coalesce((%s), false)', _queue.expire_when)
            || coalesce(' and ' || nullif(pgcombine_internal.bucket_condition(_name, _bucket), ''), ''),
        'differs', string_agg(pgcombine_internal.differ_expression(c.type, format('c.%I', 'old_' || c.name),
            format('c.%I', c.name)), ' or ' order by c.position),
        'assign', pgcombine_internal.column_list(_name, 'value', '{name} = c.{name}'),
        'changes', format(
            E'select *\n    from (select %s, %s, %s from pgcombine_combined%s) as change\n    where %s',
            _keys, pgcombine_internal.column_list(_name, 'value', '{old}'),
            pgcombine_internal.column_list(_name, 'value', 'case when not pgcombine_gone then {name} end as {new}'),
            case when _queue.expire_silently then ' where (' || _queue.expire_when || ') is not true' end,
            string_agg(pgcombine_internal.differ_expression(c.type, quote_ident('old_' || c.name),
                quote_ident('new_' || c.name)), ' or ' order by c.position)),
        'needs', _computed ->> 'needs',
        'query', _computed ->> 'query',
        'touched_keys', pgcombine_internal.column_list(_name, 'key', 'u.{name}'),
        'same_computed', pgcombine_internal.column_list(_name, 'key', 't.{name} {equals} q.{name}', ' and '),
        'same_touched', pgcombine_internal.column_list(_name, 'key', 'd.{name} {equals} u.{name}', ' and '),
        'computed', (
            select string_agg(format('q.%I', k), ', ') from jsonb_array_elements_text(_computed -> 'columns') k))
    into _parts
    from pgcombine.queue_column c where c.queue = _name and c.role = 'value';
    if observed then
        select _parts || jsonb_build_object(
            'observers', string_agg(format(E', pgcombine_observer_%s as materialized ( -- %s\n%s\n)', o.number,
                regexp_replace(o.observer, '[\n\r]', ' ', 'g'), o.statement), '' order by o.number),
            'counts', string_agg(format(
                E',\n       (select count(*) from pgcombine_observer_%s) as observer_%s', o.number, o.number), ''
                order by o.number) filter (where o.bare ~* '^(select|values|table)\y'
                    or o.bare ~* '^with\y' and o.bare !~* '\y(insert|update|delete|merge)\y'))
        into _parts
        from (select row_number() over (order by a.position) as number, a.observer, a.statement,
                     regexp_replace(a.statement, '^(\s|\(|--[^\n]*\n|/\*([^*]|\*+[^*/])*\*+/)*', '') as bare
              from pgcombine.observer a where a.queue = _name and a.language = 'sql') o;
    end if;
    return pgcombine_internal.fill(
$pass$with pgcombine_updates as not materialized (
    {log}
), pgcombine_quarantining as (
    insert into {quarantine} (pgcombine_key, {keys}, {new_values})
    select pgcombine_quarantined.pgcombine_key, {keys}, {new_values}
    from pgcombine_updates as updates join {quarantined_keys} on {key_is_quarantined}
    where $1
    returning pgcombine_key
), pgcombine_counted as (
    update pgcombine.quarantined_key k set updates = k.updates + h.updates
    from (select pgcombine_key, count(*) as updates from pgcombine_quarantining group by pgcombine_key) h
    where k.id = h.pgcombine_key
), pgcombine_folded as (
    select {keys}, {folds}, count(*) as pgcombine_updates
    from {source}
    where not ($1 and exists (select from {quarantined_keys} where {key_is_quarantined}))
    group by {keys}
    order by {keys}
), $pass$ || case when _computed is null then '' else
'pgcombine_touched as materialized (
    select {touched_keys} from pgcombine_folded u ' || case when _computed ->> 'needs' is not null then _old
        || ' where case when {needs} then true end' else '' end || '
), pgcombine_computed as (
    {query}
), ' end || $pass$pgcombine_combined as (
    select new.*, ({gone}) is true as pgcombine_gone
    from (
        select {combined}
        from pgcombine_folded u $pass$ || _old || case when _computed is null then '' else '
        left join (
            select t.*, {computed}, true as pgcombine_touched
            from pgcombine_touched t left join pgcombine_computed q on {same_computed}
        ) d on {same_touched}' end || $pass$
    ) as new
$pass$ || case when _queue.expire_when is null then '' else
$expired$    union all
    (select {keys}, v.ctid, 0, {new_values}, {new_values}, true
    from {values} v
    where v.ctid >= $2 and v.ctid < $3 and {expired}
      and not exists (select from pgcombine_folded u where {same_key})
      and not exists (select from {quarantined_keys} where {key_is_quarantined})
    limit 10000)
$expired$ end || $pass$), pgcombine_removed as (
    delete from {values} v using pgcombine_combined c
    where v.ctid = c.pgcombine_row and c.pgcombine_gone and num_nulls(c.pgcombine_row) = 0
), pgcombine_updated as (
    update {values} v set {assign}
    from (
        select * from pgcombine_combined c
        where not c.pgcombine_gone and ({differs}) and num_nulls(c.pgcombine_row) = 0
        order by c.pgcombine_row
    ) c
    where v.ctid = c.pgcombine_row
), pgcombine_inserted as (
    insert into {values} ({keys}, {new_values})
    select {keys}, {new_values} from pgcombine_combined c where c.pgcombine_row is null and not c.pgcombine_gone
), changes as (
    {changes}
), arrived as (
    select {keys}, {new_values} from pgcombine_folded
){observers}
select coalesce((select sum(pgcombine_updates) from pgcombine_folded), 0)::bigint as updates,
       (select count(*) from pgcombine_folded) as keys,
       (select count(*) from changes) as changes,
       (select count(*) from pgcombine_quarantining) as quarantined,
       (select count(*) from pgcombine_combined where pgcombine_updates = 0) as expired{counts}$pass$,
        jsonb_build_object('observers', null, 'counts', null) || _parts);
end
$$;
