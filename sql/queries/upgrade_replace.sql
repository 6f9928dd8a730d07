-- Applies a file of sql/. If create or replace fails because a routine's result or parameters or a view's columns have
-- changed, the statement sets aside the older routine or view (see set_aside.sql) and tries again.
do $pgcombine_upgrade$
declare
    _statements constant text := $pgcombine_file${statements}$pgcombine_file$;
begin
    execute _statements;
exception when invalid_function_definition or invalid_table_definition or wrong_object_type then
    perform pg_temp.set_aside('{names}', pg_temp.made(), true);
    execute _statements;
end
$pgcombine_upgrade$
