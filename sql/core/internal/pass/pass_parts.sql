-- pgcombine_internal.pass_parts(queue) → jsonb
-- Returns the parts of the statement of a queue's passes that follow from its definition (see pass_sql), and
-- expressions on the queue's columns that a pass needs besides. regenerate_pass keeps them in pgcombine.queue.
--   keys, new_values    names of the columns
--   folds, source       the aggregates that fold updates, and what they read
--   same_key, held_key  conditions: v and u have the same key; pgcombine_held has the key of a row
--   quarantine, held_keys  the tables of held updates and of their keys
--   combined            the columns of pgcombine_combined: a row for each key, with its old and new values
--   gone, differs       conditions: the key is deleted; the new values differ from the old ones
--   assign              the assignments of an update
--   changes             the query of the relation changes
--   retained            whether the values are retained; null: keys don't expire
--   observers           the observers in SQL
--   counts              a column for each observer that only reads (select my_function(…) from changes): it runs only
--                       if the outer query reads its rows
--   python              the observers in Python, in the order in which they run
--   portable            see portable_keys
--   hash, bytes         the key's hash (see key_hash); the size of the values that a pass collects (see takes_bytes)
-- Equal keys may look different (1 and 1.0). The changes show a key as it is stored, so that an observer which compares
-- keys as text sees an unbroken chain.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.pass_parts(queue text)
returns jsonb
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(pass_parts.queue);
    _name constant text := _queue.queue;
begin
    return (
        select jsonb_build_object(
            'keys', pgcombine_internal.column_list(_name, 'key'),
            'new_values', pgcombine_internal.column_list(_name, 'value'),
            'folds', pgcombine_internal.column_list(_name, 'value', '{fold} as {name}'),
            'source', pgcombine_internal.fold_source(_name, 'pgcombine_updates as updates'),
            'same_key', pgcombine_internal.column_list(_name, 'key', 'v.{name} {equals} u.{name}', ' and '),
            'held_key', pgcombine_internal.held_key(_name),
            'quarantine', format('pgcombine.%I', _name || '_quarantine'),
            'held_keys', format('pgcombine.%I', _name || '_quarantine_keys'),
            'combined', concat_ws(', ',
                pgcombine_internal.column_list(_name, 'key', 'coalesce(v.{name}, u.{name}) as {name}'),
                'v.pgcombine_row, u.pgcombine_updates',
                pgcombine_internal.column_list(_name, 'value', 'v.{name} as {old}'),
                string_agg(format('%s as %I', pgcombine_internal.merge_expression(c, 'v', 'u'), c.name), ', '
                           order by c.position)),
            'gone', coalesce(nullif(concat_ws(' or ',
                '(' || _queue.delete_when || ')', '(' || _queue.retain || ') is false'), ''), 'false'),
            'differs', string_agg(pgcombine_internal.differ_expression(c.type, format('c.%I', 'old_' || c.name),
                format('c.%I', c.name)), ' or ' order by c.position),
            'assign', pgcombine_internal.column_list(_name, 'value', '{name} = c.{name}'),
            'changes', format(
                E'select *\n    from (select %s, %s, %s from pgcombine_combined%s) as change\n    where %s',
                pgcombine_internal.column_list(_name, 'key'), pgcombine_internal.column_list(_name, 'value', '{old}'),
                pgcombine_internal.column_list(_name, 'value', 'case when not pgcombine_gone then {name} end as {new}'),
                case when _queue.retain_silently then ' where (' || _queue.retain || ') is not false' end,
                string_agg(pgcombine_internal.differ_expression(c.type, quote_ident('old_' || c.name),
                    quote_ident('new_' || c.name)), ' or ' order by c.position)),
            'retained', '(' || _queue.retain || ')',
            'hash', pgcombine_internal.key_hash(_name),
            'portable', pgcombine_internal.portable_keys(_name),
            'bytes', string_agg(format('coalesce(pg_catalog.pg_column_size(array[%I]), 0)', c.name), ' + '
                                order by c.position)
                filter (where (k.combiner in ('jsonb_merge', 'array_union') or k.function is not null)
                        and pgcombine_internal.unbounded(c)))
        from pgcombine.queue_column c join pgcombine.combiner k using (combiner)
        where c.queue = _name and c.role = 'value')
    || (
        select jsonb_build_object(
            'observers', coalesce(string_agg(format(E', pgcombine_observer_%s as materialized ( -- %s\n%s\n)', o.number,
                regexp_replace(o.observer, '[\n\r]', ' ', 'g'), o.statement), '' order by o.number), ''),
            'counts', coalesce(string_agg(format(
                E',\n       (select count(*) from pgcombine_observer_%s) as observer_%s', o.number, o.number), ''
                order by o.number) filter (where pgcombine_internal.reads(o.statement)), ''))
        from (select row_number() over (order by a.position) as number, a.observer, a.statement
              from pgcombine.observer a where a.queue = _name and a.language = 'sql') o)
    || jsonb_build_object('python', array(
        select o.observer from pgcombine.observer o where o.queue = _name and o.language = 'python'
        order by o.position));
end
$$;
