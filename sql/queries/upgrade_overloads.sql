-- Sets older overloads of the functions aside that were made in this upgrade, before anything calls a component's
-- functions: see set_aside.
do $$
begin
    perform pg_temp.set_aside(
        array(select p.proname from pg_catalog.pg_proc p join unnest(pg_temp.made()) as made (oid) using (oid)),
        pg_temp.made(), false);
end
$$
