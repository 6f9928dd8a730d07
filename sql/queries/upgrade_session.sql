-- The number of this session's process, and for how many seconds it tries to get locks: a minute if it has no limit.
select pg_backend_pid(),
       extract(epoch from coalesce(nullif(current_setting('lock_timeout'), '0'), '60s')::interval)::double precision
