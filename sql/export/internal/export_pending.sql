-- pgcombine_internal.export_pending(export) → setof (bucket, changes, entries, whole)
-- Returns the buckets of which an export has something to deliver: the number of changes, the number of entries that
-- wait again (see export_entry), and whether keys of a full state are left.
create or replace function pgcombine_internal.export_pending(export pgcombine.export)
returns table (bucket integer, changes bigint, entries bigint, whole boolean)
language sql stable
as $$
    select x.bucket, b.last - x.after, coalesce(e.entries, 0), x.full_after is not null
    from pgcombine.export_bucket x
    join pgcombine.change_bucket b on b.queue = (export_pending.export).queue and b.bucket = x.bucket
    left join (
        select e.bucket, count(*) as entries from pgcombine.export_entry e
        where e.export = (export_pending.export).export and e.error is null group by 1) e on e.bucket = x.bucket
    where x.export = (export_pending.export).export
      and (b.last > x.after or e.entries > 0 or x.full_after is not null)
$$;
