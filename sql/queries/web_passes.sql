-- The last passes of a queue, latest first.
select bucket, pass, ended, seconds, updates, keys, changes, hash_ranges from pgcombine.pass_recent where queue = %s
    order by ended desc
