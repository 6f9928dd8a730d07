-- pgcombine_internal.set_delete_when(queue, condition)
-- Checks and stores the condition under which a pass deletes a key.
-- Tables written: pgcombine.queue.
-- Errors: PC003 see checked_condition.
create or replace function pgcombine_internal.set_delete_when(queue text, condition text)
returns void
language sql
as $$
    update pgcombine.queue q
    set delete_when = pgcombine_internal.checked_condition(q.queue, 'delete_when', set_delete_when.condition)
    where q.queue = set_delete_when.queue;
    select pgcombine_internal.warn_of_delete_when(set_delete_when.queue);
$$;
