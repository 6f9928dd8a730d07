-- pgcombine.combine_sql(queue, bucket [, condition, tail]) → text
-- The statement that a pass over this bucket runs after its claim, to read or to explain.
--   condition  a where clause that restricts the updates it takes, to whole keys; empty: all of the bucket
--   tail       what the statement returns besides updates, keys and changes
-- Errors: PC001 unknown queue; PC003 the queue has no such bucket.
create or replace function pgcombine.combine_sql(queue text, bucket integer, condition text default '', tail text default '')
returns text
language plpgsql stable
as $$
declare
    _slice constant text := pgcombine.bucket_slice(combine_sql.queue, combine_sql.bucket);
    _queue constant pgcombine.queue := pgcombine.require_queue(combine_sql.queue);
    _tables constant text[] := pgcombine.bucket_tables(combine_sql.queue, combine_sql.bucket);
begin
    if combine_sql.bucket is null or combine_sql.bucket not between 0 and _queue.buckets - 1 then
        raise exception 'queue "%" has no bucket %', _queue.queue, coalesce(combine_sql.bucket::text, 'null')
            using errcode = 'PC003', hint = format('its buckets are 0 to %s', _queue.buckets - 1);
    end if;
    return format(_queue.pass, _tables[1], _tables[2],
        case when _slice = '' then combine_sql.condition
             when coalesce(combine_sql.condition, '') = '' then 'where ' || _slice
             else combine_sql.condition || ' and ' || _slice end,
        combine_sql.tail);
end
$$;
