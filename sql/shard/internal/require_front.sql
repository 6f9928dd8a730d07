-- pgcombine_internal.require_front(queue) → pgcombine.front
-- Returns the catalog row of a front.
-- Errors: PC001 there is no such front.
create or replace function pgcombine_internal.require_front(queue text)
returns pgcombine.front
language plpgsql stable
as $$
declare
    _front pgcombine.front;
begin
    select f.* into _front from pgcombine.front f where f.queue = require_front.queue;
    perform pgcombine_internal.require(found, 'PC001', format('there is no front "%s"', queue),
        'select queue from pgcombine.front lists them');
    return _front;
end
$$;
