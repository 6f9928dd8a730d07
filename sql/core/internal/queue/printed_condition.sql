-- pgcombine_internal.printed_condition(table) → text
-- Returns the check constraint "condition" of a table as PostgreSQL prints it. The text doesn't depend on the session's
-- settings: names outside pg_catalog are qualified, and every session reads the constants alike.
create or replace function pgcombine_internal.printed_condition("table" regclass)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
set bytea_output = 'hex'
set datestyle = 'ISO, MDY'
set extra_float_digits = 1
set intervalstyle = 'postgres'
set quote_all_identifiers = off
set standard_conforming_strings = on
set timezone = 'UTC'
as $$
    select pg_get_expr(k.conbin, k.conrelid)
    from pg_constraint k where k.conrelid = printed_condition."table" and k.conname = 'condition'
$$;
