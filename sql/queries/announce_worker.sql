-- Announces this session as that of a worker, for the view pgcombine.worker, until the session ends.
-- The query takes shared advisory locks of the session, which every role sees in pg_locks. Behind a pooler in
-- transaction mode such locks don't work.
-- Parameters: the time at which the worker started; the names of the queues that it works on, null: all.
select pg_advisory_lock_shared(hashtext(l.class), l.object)
from (
    -- seconds since 1970 fit into 32 bits until the year 2106
    select 'pgcombine.worker' as class, floor(extract(epoch from %s::timestamptz))::bigint::bit(32)::integer as object
    union all
    select 'pgcombine.worker.queue', hashtext(q) from unnest(%s::text[]) q
) l
