-- Tells everybody, in the view pgcombine.worker, that this session is a worker's, until the session ends. It takes shared
-- advisory locks, which keep nobody waiting: every role sees them in pg_locks, and they leave nothing behind.
-- Parameters: when the worker started; the queues that it works on, null: all.
-- Session locks: not for connections through a pooler in transaction mode.
select pg_advisory_lock_shared(hashtext(l.class), l.object)
from (
    -- seconds since 1970 as 32 bits, which last until 2106
    select 'pgcombine.worker' as class, floor(extract(epoch from %s::timestamptz))::bigint::bit(32)::integer as object
    union all
    select 'pgcombine.worker.queue', hashtext(q) from unnest(%s::text[]) q
) l
