-- Applies a file of sql/. If in an older version the result or the parameters of the routine have other names or types,
-- which REPLACE can't change, the older routine is dropped first.
do $pgcombine_upgrade$
declare
    _statements constant text := $pgcombine_file${statements}$pgcombine_file$;
begin
    execute _statements;
exception when invalid_function_definition then
    drop routine {routine};
    execute _statements;
end
$pgcombine_upgrade$
