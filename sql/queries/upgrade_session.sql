-- The number of this session's process, and its lock_timeout in seconds; without a lock_timeout a minute.
select pg_backend_pid(),
       extract(epoch from coalesce(nullif(current_setting('lock_timeout'), '0'), '60s')::interval)::double precision
