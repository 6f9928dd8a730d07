-- pgcombine.sound_packed(queue) → text
-- The check of the tables of packed rows: their arrays are as long as each other, and no key in them is null or too long.
create or replace function pgcombine.sound_packed(queue text)
returns text
language sql stable
as $$
    select format('coalesce(cardinality(pgcombine_0) > 0 and cardinality(pgcombine_0) = all (array[%s]) and coalesce(array_ndims(pgcombine_0), 1) = 1, false)',
               string_agg(format('cardinality(pgcombine_%s)', c.position), ', ' order by c.position))
           || string_agg(format(' and num_nulls(variadic pgcombine_%s) = 0', c.position), '' order by c.position) filter (where c.role = 'key')
           -- short arrays that aren't compressed hold no long key
           || coalesce(string_agg(format(' and pg_column_size(pgcombine_%1$s) <= 2600 / %2$s and pg_column_compression(pgcombine_%1$s) is null', c.position,
                   (select count(*) from pgcombine.queue_column k where k.queue = $1 and k.role = 'key')), '')
               filter (where c.role = 'key' and t.typlen = -1), '')
    from pgcombine.queue_column c join pg_type t on t.oid = c.type::regtype
    where c.queue = sound_packed.queue
$$;
