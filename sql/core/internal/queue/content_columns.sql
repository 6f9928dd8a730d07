-- pgcombine_internal.content_columns(queue) → (name, role, type, equals, shown, composite, read)
-- Returns the columns of a queue for statements that Python writes to read it, keys first. A queue that is spread over
-- other databases is here only a table of values, which is partitioned by the key.
--   type        the type below a domain, without length and precision
--   equals      the equality operator of a key column's type
--   shown       the type to which a key is cast, since psycopg makes of it what can't be hashed, or ''
--   composite   whether it is a composite type
--   read        whether the role may select the column's current value
create or replace function pgcombine_internal.content_columns(queue text)
returns table (name text, role text, type text, equals text, shown text, composite boolean, read boolean)
language plpgsql stable -- PL/pgSQL keeps the query's plan, which takes longer than the query
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    _values constant regclass := to_regclass(format('pgcombine.%I', queue || '_values'));
    _current constant regclass := to_regclass(format('pgcombine.%I', queue || '_current'));
begin
    return query
    with there as (
        select c.name, c.role, c.position, a.atttypid,
               has_column_privilege(_current, c.name, 'select') as read
        from pgcombine.queue_column c
        -- pg_attribute has the type's oid; to look up the type by its name, the role would need usage on its schema
        join pg_attribute a on a.attname = c.name and a.attrelid = _values
        where c.queue = content_columns.queue
        union all
        select a.attname, case when a.attnum = any (p.partattrs) then 'key' else 'value' end, a.attnum, a.atttypid,
               true
        from pg_partitioned_table p
        join pg_attribute a on a.attrelid = p.partrelid and a.attnum > 0
        where p.partrelid = _values and not exists (select from pgcombine.queue q where q.queue = content_columns.queue)
    )
    select t.name::text, t.role::text, pgcombine_internal.type_name(y.oid, -1), o.name,
           case when 'jsonb'::regtype in (y.oid, y.typelem) or 'm' in (y.typtype, e.typtype)
               then case when e.oid is null then 'text' else 'text[]' end else '' end as shown,
           y.typtype = 'c' as composite, t.read
    from there t
    join pg_type y on y.oid = pgcombine_internal.base_type(t.atttypid)
    left join pg_type e on y.typcategory = 'A' and e.oid = y.typelem
    left join lateral pgcombine_internal.type_operator(y.oid, 3) o on t.role = 'key'
    order by t.position;
end
$$;
