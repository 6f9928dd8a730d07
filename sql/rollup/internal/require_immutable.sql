-- pgcombine_internal.require_immutable(source, expressions)
-- Raises an error unless each expression over a table's columns is immutable. PostgreSQL requires this of expressions
-- of an index. So the function makes such indexes on an empty copy of the table.
-- Errors: PC003 an expression isn't immutable, or can't be in an index for another reason.
create or replace function pgcombine_internal.require_immutable(source regclass, expressions text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _alias constant name := (select c.relname from pg_class c where c.oid = source);
    _expression text;
begin
    execute format('create temporary table pgcombine_copy (like %s)', source);
    execute format('alter table pg_temp.pgcombine_copy rename to %I', _alias); -- expressions may name the table
    foreach _expression in array expressions loop
        begin
            execute format('create index on pg_temp.%I (((%s) is null))', _alias, _expression);
        exception
            when invalid_object_definition then
                raise exception 'the value of % can depend on the session: %', _expression, sqlerrm
                    using errcode = 'PC003', hint = 'use only immutable functions, as an index does. For days of a '
                        'timestamptz column: date_trunc(''day'', at at time zone ''UTC'') as day';
            when others then
                raise exception '% can''t be used: %', _expression, sqlerrm
                    using errcode = 'PC003', hint = 'give an expression that an index could have';
        end;
    end loop;
    execute format('drop table pg_temp.%I', _alias);
end
$$;
