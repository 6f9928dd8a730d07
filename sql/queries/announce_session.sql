-- Announces this session as one of a worker, for the view pgcombine.worker, until the session ends (see
-- announce_worker). Parameter: the number of sessions that the worker needs.
select pg_try_advisory_lock_shared(hashtext('pgcombine.worker.sessions'), %s)
