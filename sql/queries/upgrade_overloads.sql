-- Renames older overloads of the functions that this upgrade has made, before anything calls a component's functions.
-- set_aside explains the reason.
do $$
begin
    perform pg_temp.set_aside(
        array(select p.proname from pg_catalog.pg_proc p join unnest(pg_temp.made()) as made (oid) using (oid)),
        pg_temp.made(), false);
end
$$
