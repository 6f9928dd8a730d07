-- pgcombine_internal.pass_parts(queue) → jsonb
-- Returns what a pass needs of the queue's definition besides its statement. regenerate_pass stores it in
-- pgcombine.queue.
--   digest              of the statement (see pass_template): shows whether the definition has changed
--   keys, new_values    names of the key columns and of the value columns
--   key_is_quarantined  condition in SQL (see the function of this name)
--   quarantine, quarantined_keys  the tables of quarantined updates and of their keys
--   python              the observers in Python, in the order in which they run
--   stable_hash         see the function stable_hash
--   hash, bytes         expressions for the key's hash (see key_hash) and for the size of the values that a pass
--                       collects (see takes_bytes)
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.pass_parts(queue text)
returns jsonb
language sql stable
as $$
    select jsonb_build_object(
        'digest', md5(pgcombine_internal.pass_template($1)),
        'keys', pgcombine_internal.column_list($1, 'key'),
        'new_values', pgcombine_internal.column_list($1, 'value'),
        'key_is_quarantined', pgcombine_internal.key_is_quarantined($1),
        'quarantine', format('pgcombine.%I', $1 || '_quarantine'),
        'quarantined_keys', pgcombine_internal.quarantined_keys($1),
        'python', array(
            select o.observer from pgcombine.observer o where o.queue = $1 and o.language = 'python'
            order by o.position),
        'stable_hash', pgcombine_internal.stable_hash($1),
        'hash', pgcombine_internal.key_hash($1),
        'bytes', (
            select string_agg(format('coalesce(pg_catalog.pg_column_size(array[%I]), 0)', c.name), ' + '
                order by c.position)
            from pgcombine.queue_column c join pgcombine.combiner k using (combiner)
            where c.queue = $1 and (k.combiner in ('jsonb_merge', 'array_union') or k.function is not null)
              and pgcombine_internal.unbounded(c)))
$$;
