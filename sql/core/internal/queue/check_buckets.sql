-- pgcombine_internal.check_buckets(buckets, buckets_per_partition)
-- Raises unless a queue can have so many buckets, so many of which share a partition.
-- Errors: PC003 an invalid number.
create or replace function pgcombine_internal.check_buckets(buckets integer, buckets_per_partition integer)
returns void
language plpgsql stable
as $$
begin
    perform pgcombine_internal.require(buckets between 1 and 1024, 'PC003',
        'invalid number of buckets: ' || coalesce(buckets::text, 'null'), 'give 1 to 1024');
    perform pgcombine_internal.require(buckets_per_partition >= 1
        and buckets % nullif(buckets_per_partition, 0) = 0, 'PC003',
        'invalid number of buckets a partition: ' || coalesce(buckets_per_partition::text, 'null'),
        format('give a number that divides the %s buckets', buckets));
end
$$;
