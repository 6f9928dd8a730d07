-- The last passes of a queue, latest first.
select bucket, pass, ended, seconds, updates, keys, changes, slices from pgcombine.pass_recent where queue = %s
    order by ended desc
