-- pgcombine.bucket_source(queue, updates) → text
-- An item of a from clause: the updates, with the number of each one's partition as pgcombine_bucket. It is
-- PostgreSQL's own routing into hash partitions, computed in SQL.
--   updates  an item of a from clause with the queue's key columns
-- As compute_partition_hash_value and get_hash_partition_greatest_modulus's callers do (PostgreSQL,
-- partitioning/partbounds.c): each key column is hashed with HASH_PARTITION_SEED, the hashes are combined by
-- hash_combine64, the remainder by the number of partitions tells the partition. What is on disk follows it, so
-- that no version of PostgreSQL changes it.
-- Null: the hash function of a key type is neither PostgreSQL's nor in C (see key_hash), so it isn't known here; or
-- the type is an enum, which is hashed by its values' oids: these are others where a dump is restored.
create or replace function pgcombine.bucket_source(queue text, updates text)
returns text
language plpgsql stable
as $$
declare
    _seed constant bigint := 8816678312871386365; -- 0x7A5B22367996DCFD
    _golden constant text := '5305509591434766563'; -- 0x49A0F4DD15E5A8E3, of hash_combine64
    _partitions integer;
    _source text;
    _hashes text[]; -- of the key columns
begin
    select q.partitions into _partitions from pgcombine.queue q where q.queue = bucket_source.queue;
    -- the hash of a row with one column is the column's, also where the type's own function is for another type
    select array_agg(case when l.lanname in ('internal', 'c') and t.typcategory <> 'E' then format(
               case when p.proargtypes[0] = pgcombine.base_type(c.type::regtype) or exists (
                        select from pg_cast k where k.castsource = pgcombine.base_type(c.type::regtype) and k.casttarget = p.proargtypes[0]
                                               and k.castmethod = 'b' and k.castcontext = 'i')
                    then '%1$s(%2$s, %3$s)' else 'hash_record_extended(row(%2$s), %3$s)' end,
               pgcombine.procedure_name(p.oid), format('u.%I', c.name) || coalesce(' collate ' || c.collation, ''), _seed) end
               order by c.position)
    into _hashes
    from pgcombine.queue_column c
    join pg_type t on t.oid = c.type::regtype
    left join pg_proc p on p.oid = pgcombine.type_hash(c.type::regtype)
    left join pg_language l on l.oid = p.prolang
    where c.queue = bucket_source.queue and c.role = 'key';
    if array_position(_hashes, null) is not null then
        return null;
    end if;

    if cardinality(_hashes) = 1 and _partitions & (_partitions - 1) = 0 then -- the low half is enough
        return format('(select u.*, ((%s & 4294967295) + (%s & 4294967295)) & %s as pgcombine_bucket from %s as u) as u',
            _hashes[1], _golden, _partitions - 1, bucket_source.updates);
    end if;
    select format('(select u.*, %s from %s as u offset 0) as u', -- offset: each level is computed once
        string_agg(format('%s as pgcombine_h%s', hash, number), ', ' order by number), bucket_source.updates)
    into _source
    from unnest(_hashes) with ordinality as h (hash, number);
    _source := format('(select *, %s as pgcombine_a1 from %s offset 0) as u', pgcombine.hash_sum('pgcombine_h1', _golden), _source);
    for _number in 2 .. cardinality(_hashes) loop -- a ^= h + golden + (a << 54) + (a >> 7)
        _source := format('(select *, %1$s as pgcombine_b%2$s, pgcombine_a%3$s << 54 as pgcombine_c%2$s, (pgcombine_a%3$s >> 7) & 144115188075855871 as pgcombine_d%2$s from %4$s offset 0) as u',
            pgcombine.hash_sum('pgcombine_h' || _number, _golden), _number, _number - 1, _source);
        _source := format('(select *, %1$s as pgcombine_e%2$s from %3$s offset 0) as u',
            pgcombine.hash_sum('pgcombine_c' || _number, 'pgcombine_d' || _number), _number, _source);
        _source := format('(select *, pgcombine_a%1$s # %2$s as pgcombine_a%3$s from %4$s offset 0) as u', _number - 1,
            pgcombine.hash_sum('pgcombine_b' || _number, 'pgcombine_e' || _number), _number, _source);
    end loop;
    return format('(select *, %s as pgcombine_bucket from %s) as u',
        replace(replace('(((({a} >> 32) & 4294967295) % {m}) * (4294967296 % {m}) + ({a} & 4294967295)) % {m}',
            '{a}', 'pgcombine_a' || cardinality(_hashes)), '{m}', _partitions::text), _source);
end
$$;
