-- Sets aside older functions that share the name of a function that this upgrade has made, but have other parameters.
-- The query runs before anything calls the functions of components. set_aside.sql explains the reason.
do $$
begin
    perform pg_temp.set_aside(
        array(select p.proname from pg_catalog.pg_proc p join unnest(pg_temp.made()) as made (oid) using (oid)),
        pg_temp.made(), false);
end
$$
