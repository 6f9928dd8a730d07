-- pgcombine.held_key(queue) → text
-- The condition that a row of <queue>_quarantine_keys, as pgcombine_held, is the key of a row with the queue's columns.
create or replace function pgcombine.held_key(queue text)
returns text
language sql stable
as $$
    select string_agg(format('pgcombine_held.pgcombine_%s %s %I', c.position,
                             pgcombine.operator_name(pgcombine.type_operator(c.type::regtype, 3)), c.name),
                      ' and ' order by c.position)
    from pgcombine.queue_column c
    where c.queue = held_key.queue and c.role = 'key'
$$;
