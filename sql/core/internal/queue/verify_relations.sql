-- pgcombine_internal.verify_relations(queue) → problems
-- The part of verify that finds buckets that are not in the catalog or too many there, and missing tables and views.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.verify_relations(queue text)
returns setof text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(verify_relations.queue);
begin
    return query
    select format('bucket %s is missing in pgcombine.bucket: its updates are never combined', n)
    from generate_series(0, _queue.buckets - 1) n
    where not exists (select from pgcombine.bucket b where b.queue = _queue.queue and b.bucket = n);
    return query
    select format('bucket %s is in pgcombine.bucket, but the queue has %s buckets', b.bucket, _queue.buckets)
    from pgcombine.bucket b where b.queue = _queue.queue and b.bucket not between 0 and _queue.buckets - 1;
    return query
    select format('relation pgcombine.%I is missing', _queue.queue || s)
    from unnest(array['_updates', '_values', '_pending', '_current', '_quarantine', '_quarantine_keys']) s
    where to_regclass(format('pgcombine.%I', _queue.queue || s)) is null;
end
$$;
