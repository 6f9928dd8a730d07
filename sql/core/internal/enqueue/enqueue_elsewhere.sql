-- pgcombine_internal.enqueue_elsewhere(queue, token, updates) → bigint
-- Called if no queue has this name. Runs the components' queries for the event enqueue (see the table hook) until one
-- finds an object of its component with this name and appends the updates to it. Returns the number of updates.
--   token  see enqueue_once; null: none
-- Errors: PC001 no component has an object of this name; 40001 the queue was made meanwhile; those of components.
create or replace function pgcombine_internal.enqueue_elsewhere(queue text, token text, updates jsonb)
returns bigint
language plpgsql
as $$
declare
    _query text;
    _count bigint;
begin
    for _query in select h.query from pgcombine.hook h where h.event = 'enqueue' loop
        execute _query into _count using queue, token, updates;
        if _count is not null then
            return _count;
        end if;
    end loop;
    perform pgcombine_internal.require_queue(queue);
    raise exception 'queue "%" was made meanwhile', queue using errcode = '40001', hint = 'run the transaction again';
end
$$;
