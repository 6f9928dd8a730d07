-- pgcombine_internal.deallocate_new()
-- Deallocates the prepared statements that SQL in the present statement of the client has prepared. <queue>_owned calls
-- the function after it has run code of another role: that role could otherwise replace a prepared statement that the
-- client executes later, with the rights of the session.
create or replace function pgcombine_internal.deallocate_new()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _name text;
begin
    for _name in
        select p.name from pg_prepared_statements p where p.from_sql and p.prepare_time >= statement_timestamp()
    loop
        execute format('deallocate %I', _name);
    end loop;
end
$$;
