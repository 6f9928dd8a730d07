-- The queues that have quarantined keys.
select distinct queue from pgcombine.quarantined_key order by queue
