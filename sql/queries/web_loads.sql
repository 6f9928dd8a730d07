-- The loads from Spark, oldest first.
select load, queue, run_id, kind, role, started_at, seen_at, ended, rows, bytes from pgcombine.load_stat
    order by started_at, load
