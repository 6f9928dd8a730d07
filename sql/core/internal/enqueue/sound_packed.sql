-- pgcombine_internal.sound_packed(queue) → text
-- Returns the check constraint of tables with packed rows: their arrays have equal lengths, and no key in them is null
-- or too long.
create or replace function pgcombine_internal.sound_packed(queue text)
returns text
language sql stable
as $$
    select format('(cardinality(pgcombine_0) > 0 and %s and %s) is true',
        pgcombine_internal.column_list(sound_packed.queue, form => 'cardinality(pgcombine_{position}) = cardinality(pgcombine_0)', separator => ' and '),
        pgcombine_internal.all_keys_sound(sound_packed.queue, 'pgcombine_{position}'))
$$;
