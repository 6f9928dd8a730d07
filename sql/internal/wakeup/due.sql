-- pgcombine_internal.due() → (queue, bucket)
-- Lists the buckets that a worker should pass over now: those of busy, except buckets whose last pass failed a short
-- while ago.
create or replace function pgcombine_internal.due(out queue text, out bucket integer)
returns setof record
language sql stable
as $$
    select b.queue, b.bucket
    from pgcombine_internal.busy() b
    where not exists (
        select from pgcombine.failure f
        where f.queue = b.queue and f.bucket = b.bucket and f.retry_at > clock_timestamp())
$$;
