-- pgcombine_internal.all_keys_sound(queue, parameters) → text
-- Returns the condition that sound_keys holds for the arrays of all key columns.
--   parameters  a template (see column_list) of an array's name: 'pgcombine_{position}'
create or replace function pgcombine_internal.all_keys_sound(queue text, parameters text)
returns text
language sql stable
as $$
    select string_agg(format('pgcombine_internal.sound_keys(%s, %s)',
        pgcombine_internal.fill(all_keys_sound.parameters, jsonb_build_object('position', c.position, 'number', c.position + 1)),
        coalesce(case when t.typlen = -1 then 2600 / (
            select count(*) from pgcombine.queue_column k join pg_type y on y.oid = k.type::regtype
            where k.queue = $1 and k.role = 'key' and y.typlen = -1) end::text, 'null')), ' and ' order by c.position)
    from pgcombine.queue_column c
    join pg_type t on t.oid = c.type::regtype
    where c.queue = all_keys_sound.queue and c.role = 'key'
$$;
