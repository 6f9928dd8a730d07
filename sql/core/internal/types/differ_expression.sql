-- pgcombine_internal.differ_expression(type, a, b) → text
-- Returns the expression that is true if two expressions of a type differ. Two nulls don't differ.
-- The type's own equality decides (1 and 1.0 don't differ). The expression names the qualified operator, since "is
-- distinct from" would look it up on the search path. Rows and types without equality (json, xml, point) are compared
-- byte by byte.
create or replace function pgcombine_internal.differ_expression(type text, a text, b text)
returns text
language plpgsql stable
as $$
declare
    _equal constant text := (pgcombine_internal.type_operator(type::regtype, 3)).name;
    _row constant boolean := (select t.typtype = 'c' from pg_type t
                              where t.oid = pgcombine_internal.base_type(type::regtype));
begin
    if _equal is null or _row then
        return format('pg_catalog.record_image_ne(row((%s)::%s), row((%s)::%s))', a, type, b, type);
    end if;
    return format('((%s %s %s) is not true and (%s is not null or %s is not null))', a, _equal, b, a, b);
end
$$;
