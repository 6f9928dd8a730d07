-- The workers that are connected.
select worker, role, since, queues, state, pids from pgcombine.worker order by worker, role
