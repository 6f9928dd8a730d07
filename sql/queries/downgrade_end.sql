-- Drops this version's functions, and the views, the policies and pgcombine's own triggers in the schema pgcombine, at
-- the end of a downgrade. Triggers on tables of other schemas stay. The older version's upgrade makes its own functions
-- and objects. If a function of this version stayed, a call by the older version could be ambiguous. An object stays if
-- an object depends on it that this statement doesn't drop. The view of a rollup's source stays, too, since no upgrade
-- recreates it.
--   {names}  the functions of this version
do $$
declare
    _drop text;
    _dropped boolean;
begin
    -- with this row the event triggers of rollups do nothing
    insert into pgcombine.rollup_part (queue, part) select r.queue, 0 from pgcombine.rollup r limit 1;
    loop
        _dropped := false;
        for _drop in
            select format('policy %I on %s', p.polname, p.polrelid::regclass)
            from pg_policy p join pg_class c on c.oid = p.polrelid
            where c.relnamespace = 'pgcombine'::regnamespace
            union all
            select format('trigger %I on %s', t.tgname, t.tgrelid::regclass)
            from pg_trigger t join pg_class c on c.oid = t.tgrelid
            where c.relnamespace = 'pgcombine'::regnamespace and t.tgname like 'pgcombine%' and t.tgparentid = 0
            union all
            select format('view %s', c.oid::regclass)
            from pg_class c
            where c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'v'
              and not exists (select from pgcombine.rollup r where c.relname = r.queue || '_source')
            union all
            select format('routine %s', p.oid::regprocedure)
            from pg_proc p
            where p.pronamespace in ('pgcombine'::regnamespace, to_regnamespace('pgcombine_internal'))
              and p.proname = any ('{names}')
        loop
            begin
                execute 'drop ' || _drop;
                _dropped := true;
            exception when dependent_objects_still_exist then null; -- if this round drops any, the next one tries again
            end;
        end loop;
        exit when not _dropped;
    end loop;
    delete from pgcombine.rollup_part where part = 0;
end
$$
