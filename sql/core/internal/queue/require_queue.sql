-- pgcombine_internal.require_queue(queue) → pgcombine.queue
-- Returns the catalog row of a queue.
-- Errors: PC001 there is no such queue. The hint names the queue with the most similar name, if one is similar enough:
-- the two names have many pairs of letters in common.
create or replace function pgcombine_internal.require_queue(queue text)
returns pgcombine.queue
language plpgsql stable
as $$
declare
    _queue pgcombine.queue;
    _near text;
begin
    select q.* into _queue from pgcombine.queue q where q.queue = require_queue.queue;
    if not found then
        with pair as (
            select distinct n.name, n.wanted, substr(format(' %s ', n.name), i, 2) as letters
            from (select q.queue as name, false as wanted from pgcombine.queue q
                  union all select require_queue.queue, true) n
            cross join generate_series(1, length(n.name) + 1) i
        ), common as (
            select p.name, count(*) filter (where p.letters in (select w.letters from pair w where w.wanted)) as same,
                   count(*) + (select count(*) from pair w where w.wanted) as both_sides
            from pair p
            where not p.wanted
            group by p.name
        )
        select c.name into _near from common c where 4 * c.same >= c.both_sides
        order by c.same::float8 / c.both_sides desc, c.name limit 1;
        raise exception 'there is no queue "%"', queue
            using errcode = 'PC001',
                hint = coalesce('did you mean "' || _near || '"?', 'select queue from pgcombine.queue lists them');
    end if;
    return _queue;
end
$$;
