-- Applies a file of sql/. If in an older version the result, the parameters or the columns have other names or types,
-- which REPLACE can't change, the older routine or view is set aside first.
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
