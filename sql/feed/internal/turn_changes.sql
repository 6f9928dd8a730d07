-- pgcombine_internal.turn_changes(queue)
-- Records the last sequences of a queue's changes while the queue gets other buckets, and adds missing buckets. A
-- portion that begins before these sequences ends there at the latest, since the later changes of a key can be in
-- another bucket (see feed_bounds).
-- Tables written: change_log, change_bucket.
create or replace function pgcombine_internal.turn_changes(queue text)
returns void
language sql
as $$
    update pgcombine.change_log l set turns = l.turns || pgcombine_internal.change_vector(l.queue)
    where l.queue = turn_changes.queue;
    insert into pgcombine.change_bucket (queue, bucket, last)
    select l.queue, n, l.number << 40
    from pgcombine.change_log l join pgcombine.queue q using (queue) cross join generate_series(0, q.buckets - 1) n
    where l.queue = turn_changes.queue
    on conflict do nothing
$$;
