-- pgcombine_internal.value_size(type, expression) → text
-- Returns an expression for the size in bytes of a value before compression; null: all values of the type have the same
-- size.
create or replace function pgcombine_internal.value_size(type regtype, expression text)
returns text
language sql stable
as $$
    select format(case when t.typcategory = 'S' then 'pg_catalog.octet_length((%s)::text)'
                       when pgcombine_internal.base_type(t.oid) = 'bytea'::regtype then 'pg_catalog.octet_length(%s)'
                       else 'pg_catalog.pg_column_size(array[%s])' end, expression) -- array[…] detoasts the value
    from pg_type t where t.oid = value_size.type and t.typlen = -1
$$;
