-- The destinations: exports, and other servers.
select name, kind, state, failures, retry_at, reason, since, last_success, last_failure from pgcombine.destination
    order by kind, name
