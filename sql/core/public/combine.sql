-- pgcombine.combine(queue [, bucket]) → (bucket, updates, keys, changes, more)
-- Runs one pass over one bucket: claims the bucket, combines its pending updates with the values, and writes the new
-- values and, if needed, a journal row (see end_pass), all in the caller's transaction. Returns no row if another
-- session has claimed the bucket, if the queue is paused, or if no bucket was given and no unclaimed one has pending
-- updates. To combine everything, call pgcombine.drain. Updates that the caller's own transaction has enqueued stay
-- pending, since they aren't committed.
--   bucket   null: any unclaimed one with pending updates
--   updates  number of updates that the pass combined or quarantined
--   keys     number of keys whose updates it combined
--   changes  number of keys whose values changed
--   more     whether updates of other keys may be pending
-- Tables written: those of run_pass.
-- Errors: PC001 unknown queue; PC003 the queue has no such bucket; PC008 the queue has observers in Python; PC012 the
-- database is a copy in which post_restore has not run yet; 40001 another pass, or a change of the queue, has
-- committed since the snapshot, or the snapshot is more than an hour old; 42501 the caller lacks the right to run
-- passes over the queue; 54000 see refuse_bytes; those of observers and combiners.
create or replace function pgcombine.combine(queue text, inout bucket integer default null, out updates bigint,
    out keys bigint, out changes bigint, out more boolean)
returns setof record
language sql
as $$
    select p.bucket, p.updates, p.keys, p.changes, p.more
    from pgcombine_internal.run_pass(combine.queue, combine.bucket) p
$$;
