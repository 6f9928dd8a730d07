-- pgcombine.observed(queue) → jsonb
-- The observers of a queue, as they are declared now. Under read committed a pass's statement may see updates that were
-- committed after an observer was declared, which isn't part of it: who runs passes looks before and afterwards.
-- Null under repeatable read, where nothing is seen that came later.
create or replace function pgcombine.observed(queue text)
returns jsonb
language sql stable
as $$
    select jsonb_agg(o order by o.position)
    from pgcombine.observer o
    where o.queue = observed.queue
      and current_setting('transaction_isolation') not in ('repeatable read', 'serializable')
$$;
