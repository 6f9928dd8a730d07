-- Sets aside the older version's functions that this version neither has nor generates. Then drops what was set aside
-- (see drop_set_aside).
do $$
declare
    _names name[] := array(select p.proname from pg_catalog.pg_proc p join pg_temp.older o on o.routine = p.oid);
    _query text;
    _name name;
begin
    for _query in select h.query from pgcombine.hook h where h.event = 'generated' loop
        for _name in execute _query loop
            _names := array_remove(_names, _name);
        end loop;
    end loop;
    perform pg_temp.set_aside(_names, pg_temp.made(), false);
    perform pg_temp.drop_set_aside();
end
$$
