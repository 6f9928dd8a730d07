-- pgcombine_internal.key_bucket(queue, key) → text
-- Returns the expression of the bucket of a key, as bucket_condition defines it.
--   key  template of the key's columns (see fill): k.{name}
create or replace function pgcombine_internal.key_bucket(queue text, key text)
returns text
language sql stable
as $$
    select format('(select pgcombine_n from generate_series(0, %1$s - 1) pgcombine_n
        where satisfies_hash_partition(%2$L::regclass::oid, %1$s, pgcombine_n, %3$s))', q.buckets,
        format('pgcombine.%I', q.queue || '_values'), pgcombine_internal.column_list(q.queue, 'key', key_bucket.key))
    from pgcombine.queue q where q.queue = key_bucket.queue
$$;
