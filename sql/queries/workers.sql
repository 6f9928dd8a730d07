-- The workers that are connected to the database.
select worker, role, since, queues, state, pids from pgcombine.worker order by worker, role
