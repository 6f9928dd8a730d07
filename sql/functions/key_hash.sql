-- pgcombine.key_hash(queue) → text
-- The expression that hashes the key of a row: 64 bits, equal for equal keys. Slices of a bucket's keys are
-- slices of it, and quarantined keys are known by it. (Two keys with one hash would be quarantined together.)
create or replace function pgcombine.key_hash(queue text)
returns text
language sql stable
as $$
    select format('hash_record_extended(row(%s), 0)', string_agg(format('%I', c.name), ', ' order by c.position))
    from pgcombine.queue_column c
    where c.queue = key_hash.queue and c.role = 'key'
$$;
