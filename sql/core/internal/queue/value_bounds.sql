-- pgcombine_internal.value_bounds(queue, bytes [, form]) → text
-- Returns the condition that no value of a row takes more than a number of bytes, and that no document of jsonb_merge
-- has more than 64 levels; null: the types of the value columns bound them.
--   form  a template (see column_list) of a value's expression; by default the column. It may be an array of values
-- The size is that before compression: array[…] makes a value whole. Text and bytea tell theirs without that.
create or replace function pgcombine_internal.value_bounds(queue text, bytes integer, form text default null)
returns text
language sql stable
as $$
    select string_agg(format(case
            when c.combiner = 'jsonb_merge' and form is null then 'pgcombine_internal.sound_document(%s, %s)'
            when c.combiner = 'jsonb_merge' then 'pgcombine_internal.sound_document(pg_catalog.to_jsonb(%s), %s, 65)'
            when form is null and b.typcategory = 'S' then 'pg_catalog.octet_length(%s::text) <= %s'
            when form is null and b.typname = 'bytea' then 'pg_catalog.octet_length(%s) <= %s'
            else 'pg_catalog.pg_column_size(array[%s]) <= %s' end,
        pgcombine_internal.fill(coalesce(form, '{name}'), jsonb_build_object('name', quote_ident(c.name), 'position', c.position, 'number', c.position + 1)),
        value_bounds.bytes), ' and ' order by c.position)
    from pgcombine.queue_column c
    join pg_type b on b.oid = pgcombine_internal.base_type(c.type::regtype)
    where c.queue = value_bounds.queue and c.role = 'value' and pgcombine_internal.unbounded(c)
$$;
