-- pgcombine_internal.expression_of(constraint) → text
-- Returns the expression of a check constraint. Functions and types are qualified unless they are PostgreSQL's own.
create or replace function pgcombine_internal.expression_of("constraint" oid)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select pg_get_expr(k.conbin, k.conrelid) from pg_constraint k where k.oid = $1
$$;
