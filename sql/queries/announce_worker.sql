-- Announces this session as that of a worker, for the view pgcombine.worker, until the session ends.
-- The query takes shared advisory locks, since every role sees them in pg_locks, no session waits for them, and they
-- end with the session. They are session locks, which don't work through a pooler in transaction mode. Parameters: when
-- the worker started; the queues that it works on, null: all.
select pg_advisory_lock_shared(hashtext(l.class), l.object)
from (
    -- seconds since 1970 fit into 32 bits until 2106
    select 'pgcombine.worker' as class, floor(extract(epoch from %s::timestamptz))::bigint::bit(32)::integer as object
    union all
    select 'pgcombine.worker.queue', hashtext(q) from unnest(%s::text[]) q
) l
