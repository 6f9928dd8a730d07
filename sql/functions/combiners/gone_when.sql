-- pgcombine.gone_when(queue) → text
-- The condition over a key's new values under which a pass deletes it: delete_when, or that a Python combiner
-- returned None.
create or replace function pgcombine.gone_when(queue text)
returns text
language sql stable
as $$
    select coalesce(nullif(concat_ws(' or ', '(' || q.delete_when || ')', (
        select string_agg(format('%I is null', c.name), ' or ' order by c.position)
        from pgcombine.queue_column c where c.queue = q.queue and c.combiner = 'python')), ''), 'false')
    from pgcombine.queue q where q.queue = gone_when.queue
$$;
