-- The last passes over a queue that took updates, latest first (see pass_recent). Parameter: the queue.
select bucket, pass, ended, seconds, updates, keys, changes, hash_ranges from pgcombine.pass_recent where queue = %s
    order by ended desc
