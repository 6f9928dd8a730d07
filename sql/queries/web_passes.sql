-- Recent passes over a queue, latest first. Parameter: the queue.
select bucket, pass, ended, seconds, updates, keys, changes, hash_ranges from pgcombine.pass_recent where queue = %s
    order by ended desc
