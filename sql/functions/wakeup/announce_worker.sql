-- pgcombine.announce_worker([queues, since])
-- Tells everybody, in the view pgcombine.worker, that this session is a worker's, until the session ends. It takes shared
-- advisory locks, which keep nobody waiting: every role sees them in pg_locks, and they leave nothing behind.
--   queues  that it works on; null: all
--   since   when the worker started
-- Session locks: not for connections through a pooler in transaction mode.
create or replace function pgcombine.announce_worker(queues text[] default null, since timestamptz default clock_timestamp())
returns void
language plpgsql
as $$
begin
    -- seconds since 1970 as 32 bits, which last until 2106
    perform pg_advisory_lock_shared(hashtext('pgcombine.worker'), floor(extract(epoch from since))::bigint::bit(32)::integer);
    perform pg_advisory_lock_shared(hashtext('pgcombine.worker.queue'), hashtext(q)) from unnest(queues) q;
end
$$;
