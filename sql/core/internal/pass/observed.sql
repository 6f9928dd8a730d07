-- pgcombine_internal.observed(queue) → jsonb
-- Returns the current observers of a queue under read committed; null under repeatable read.
-- Under read committed a pass may see updates that were committed after an observer was added which isn't part of the
-- pass. So a pass compares the observers before and after. Under repeatable read it sees nothing that came later.
create or replace function pgcombine_internal.observed(queue text)
returns jsonb
language sql stable
as $$
    select jsonb_agg(o order by o.position)
    from pgcombine.observer o
    where o.queue = observed.queue
      and current_setting('transaction_isolation') not in ('repeatable read', 'serializable')
$$;
