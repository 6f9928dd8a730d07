-- pgcombine_internal.check_buckets(buckets, buckets_per_partition)
-- Raises unless a queue can have this number of buckets, with this number of buckets in each partition.
-- Errors: PC003 an invalid number.
create or replace function pgcombine_internal.check_buckets(buckets integer, buckets_per_partition integer)
returns void
language plpgsql stable
as $$
begin
    if (buckets between 1 and 1024) is not true then
        raise exception 'invalid number of buckets: %', coalesce(buckets::text, 'null')
            using errcode = 'PC003', hint = 'give 1 to 1024';
    elsif (buckets_per_partition >= 1 and buckets % nullif(buckets_per_partition, 0) = 0) is not true then
        raise exception 'invalid number of buckets for each partition: %', coalesce(buckets_per_partition::text, 'null')
            using errcode = 'PC003', hint = format('give a number that divides the %s buckets', buckets);
    end if;
end
$$;
