-- pgcombine_internal.bound_values(queue)
-- Adds check constraints that bound the values of a queue, since a pass has values in memory. A value in an update has
-- at most a megabyte before compression, a combined value at most 16. A document of jsonb_merge also has at most 64
-- levels.
-- A column whose type bounds its size gets no constraint. Existing constraints stay. Existing rows aren't checked.
create or replace function pgcombine_internal.bound_values(queue text)
returns void
language plpgsql
as $$
begin
    execute coalesce((
        select string_agg(format('alter table %s add constraint %I check (%s) not valid', r.name, k.name, b.condition),
            '; ')
        from (values ('_updates', 1048576, 'update_has_at_most_1_megabyte'),
                     ('_values', 16777216, 'value_has_at_most_16_megabytes')) t (suffix, bytes, name)
        cross join lateral format('pgcombine.%I', bound_values.queue || t.suffix) r (name)
        cross join lateral (
            select string_agg(format(case
                       when c.combiner = 'jsonb_merge' then 'pgcombine_internal.valid_document(%I, %s)'
                       when b.typcategory = 'S' then 'pg_catalog.octet_length(%I::text) <= %s'
                       when b.typname = 'bytea' then 'pg_catalog.octet_length(%I) <= %s'
                       -- array[…] detoasts the value
                       else 'pg_catalog.pg_column_size(array[%I]) <= %s' end, c.name, t.bytes), ' and '
                       order by c.position), bool_or(c.combiner = 'jsonb_merge')
            from pgcombine.queue_column c
            join pg_type b on b.oid = pgcombine_internal.base_type(c.type::regtype)
            where c.queue = bound_values.queue and c.role = 'value' and pgcombine_internal.unbounded(c)
        ) b (condition, merges)
        cross join lateral (select t.name || case when b.merges then '_and_64_levels' else '' end) k (name)
        where b.condition is not null
          and not exists (select from pg_constraint o where o.conrelid = r.name::regclass and o.conname = k.name)
        ), '');
end
$$;
