-- pgcombine.sound_packed(queue) → text
-- The check of the tables of packed rows: their arrays are as long as each other, and no key in them is null or too long.
create or replace function pgcombine.sound_packed(queue text)
returns text
language sql stable
as $$
    select format('coalesce(cardinality(pgcombine_0) > 0 and cardinality(pgcombine_0) = all (array[%s]) and coalesce(array_ndims(pgcombine_0), 1) = 1, false)',
               string_agg(format('cardinality(pgcombine_%s)', c.position), ', ' order by c.position))
           || ' and ' || pgcombine.short_keys(sound_packed.queue, 'pgcombine_%s')
    from pgcombine.queue_column c
    where c.queue = sound_packed.queue
$$;
