-- The process id of this session, and its lock_timeout in seconds: 60 if it has none.
select pg_backend_pid(),
       extract(epoch from coalesce(nullif(current_setting('lock_timeout'), '0'), '60s')::interval)::double precision
