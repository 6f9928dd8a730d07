-- pgcombine_internal.value_bounds(queue, bytes) → text
-- Returns the condition that no value of a row takes more than a number of bytes, and that no document of jsonb_merge
-- has more than 64 levels; null: the types of the value columns bound them.
-- The size is that before compression: array[…] makes a value whole. Text and bytea tell theirs without that.
create or replace function pgcombine_internal.value_bounds(queue text, bytes integer)
returns text
language sql stable
as $$
    select string_agg(format(case
            when c.combiner = 'jsonb_merge' then 'pgcombine_internal.sound_document(%I, %s)'
            when b.typcategory = 'S' then 'pg_catalog.octet_length(%I::text) <= %s'
            when b.typname = 'bytea' then 'pg_catalog.octet_length(%I) <= %s'
            else 'pg_catalog.pg_column_size(array[%I]) <= %s' end, c.name, value_bounds.bytes), ' and '
                order by c.position)
    from pgcombine.queue_column c
    join pg_type b on b.oid = pgcombine_internal.base_type(c.type::regtype)
    where c.queue = value_bounds.queue and c.role = 'value' and pgcombine_internal.unbounded(c)
$$;
