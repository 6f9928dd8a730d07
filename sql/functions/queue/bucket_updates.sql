-- pgcombine.bucket_updates(queue, bucket) → text
-- What stands for a bucket's pending updates, packed ones too, in the from clause of a query.
create or replace function pgcombine.bucket_updates(queue text, bucket integer)
returns text
language sql stable
as $$
    select case when b.slice = '' then u.updates
                else format('(select * from %s where %s) as u', u.updates, b.slice) end
    from (select t.updates, pgcombine.packed_updates(bucket_updates.queue, t.updates) as packed,
                 pgcombine.bucket_slice(bucket_updates.queue, bucket_updates.bucket) as slice
          from (select (pgcombine.bucket_tables(bucket_updates.queue, bucket_updates.bucket))[1] as updates) t) b
    cross join lateral (
        select case when b.packed is null then b.updates
                    else format('(select %s from %s union all %s) as u', string_agg(format('%I', c.name), ', ' order by c.position),
                                b.updates, b.packed) end as updates
        from pgcombine.queue_column c where c.queue = bucket_updates.queue) u
$$;
