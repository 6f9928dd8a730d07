-- pgcombine_internal.sound_packed(queue) → text
-- Returns the check constraint of tables with packed rows: their arrays have equal lengths, and no key in them is null
-- or too long.
create or replace function pgcombine_internal.sound_packed(queue text)
returns text
language sql stable
as $$
    select format('coalesce(cardinality(pgcombine_0) > 0 and cardinality(pgcombine_0) = all (array[%s]) and coalesce(array_ndims(pgcombine_0), 1) = 1, false) and %s',
        pgcombine_internal.column_list(sound_packed.queue, form => 'cardinality(pgcombine_{position})'), pgcombine_internal.short_keys(sound_packed.queue, 'pgcombine_{position}'))
$$;
