-- pgcombine.unpack(queue, bucket, strays) → bigint
-- Turns packed rows of the bucket into plain ones, each update where it belongs; returns how many rows that were.
-- Whoever takes some keys of a bucket and leaves others needs plain rows. Rows that can't be unpacked are set aside.
--   strays  only those that may hold updates of other buckets: they were packed for another number of buckets, and
--           copied as they were into this table (enqueues don't: see enqueue_function)
-- To be called after the claim. The row of the bucket tells that updates were written anew, and how old they are.
-- Tables written: <queue>_updates, bucket; those of hold_packed.
create or replace function pgcombine.unpack(queue text, bucket integer, strays boolean)
returns bigint
language plpgsql
as $$
declare
    _table constant text := (pgcombine.bucket_tables(unpack.queue, unpack.bucket))[1];
    _unpacked constant text := pgcombine.packed_updates(unpack.queue, 'taken');
    _columns text;
    _rows bigint;
begin
    if _unpacked is null then
        return 0;
    end if;
    perform pgcombine.hold_packed(unpack.queue, _table);
    select string_agg(format('%I', c.name), ', ' order by c.position) into _columns
    from pgcombine.queue_column c where c.queue = unpack.queue;
    execute format(
        'with taken as (
             delete from %1$s where pgcombine_packed %2$s returning *, age(xmin) as pgcombine_age
         ), plain as (
             insert into pgcombine.%3$I (%4$s) select %4$s from taken union all %5$s
         ), noted as (
             update pgcombine.bucket
             set moves = moves + 1, since = least(since, pgcombine.time_of((select max(pgcombine_age) from taken)), clock_timestamp())
             where queue = $1 and bucket = $2 and exists (select from taken)
         )
         select count(*) from taken',
        _table, case when strays then '% ' || (select q.partitions from pgcombine.queue q where q.queue = unpack.queue) || ' <> 0'
                     else 'is not null' end,
        unpack.queue || '_updates', _columns, _unpacked)
    into _rows using unpack.queue, unpack.bucket;
    return _rows;
end
$$;
