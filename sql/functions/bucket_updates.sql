-- pgcombine.bucket_updates(queue, bucket) → text
-- What stands for a bucket's pending updates in the from clause of a query.
create or replace function pgcombine.bucket_updates(queue text, bucket integer)
returns text
language sql stable
as $$
    select case when b.slice = '' then b.updates
                else format('(select * from %s where %s) as u', b.updates, b.slice) end
    from (select (pgcombine.bucket_tables(bucket_updates.queue, bucket_updates.bucket))[1] as updates,
                 pgcombine.bucket_slice(bucket_updates.queue, bucket_updates.bucket) as slice) b
$$;
