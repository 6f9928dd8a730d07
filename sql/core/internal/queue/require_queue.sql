-- pgcombine_internal.require_queue(queue) → pgcombine.queue
-- Returns the catalog row of a queue.
-- Errors: PC001 there is no such queue.
create or replace function pgcombine_internal.require_queue(queue text)
returns pgcombine.queue
language plpgsql stable
as $$
declare
    _queue pgcombine.queue;
begin
    select q.* into _queue from pgcombine.queue q where q.queue = require_queue.queue;
    if not found then
        raise exception 'there is no queue "%"', require_queue.queue
            using errcode = 'PC001', hint = 'select queue from pgcombine.queue lists them';
    end if;
    return _queue;
end
$$;
