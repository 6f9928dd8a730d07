-- Announces this session as that of a worker, for the view pgcombine.worker, until the session ends. Returns whether it
-- could. It can't while another role's session has one of the locks alone; the view then doesn't know since and queues.
-- The query takes shared advisory locks of the session, which every role sees in pg_locks. Behind a pooler in
-- transaction mode such locks don't work.
-- Parameters: the names of the queues that the worker works on, null: all; the time at which it started.
select case when (
        select coalesce(bool_and(pg_try_advisory_lock_shared(hashtext('pgcombine.worker.queue'), hashtext(q))), true)
        from unnest(%s::text[]) q)
    -- seconds since 1970 fit into 32 bits until the year 2106
    then pg_try_advisory_lock_shared(hashtext('pgcombine.worker'),
        floor(extract(epoch from %s::timestamptz))::bigint::bit(32)::integer)
    else false end
