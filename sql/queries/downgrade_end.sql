-- Drops this version's functions, views, policies and triggers at the end of a downgrade. The older version's upgrade,
-- which runs next, makes its own ones. It calls its functions before it drops other functions. A function of this
-- version with the same name and other parameters could make such a call ambiguous. So the downgrade drops this
-- version's functions, and the views, policies and triggers that need them. A function stays if a table or an object of
-- another role depends on it. The view of a rollup's source stays, too: it is a part of the rollup's definition, so no
-- upgrade makes it.
--   {names}  the functions of this version
do $$
declare
    _drop text;
    _dropped boolean;
begin
    perform set_config('pgcombine.making_triggers', 'on', true); -- else rollups' event triggers call dropped functions
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
            exception when dependent_objects_still_exist then null; -- tried again in the next round
            end;
        end loop;
        exit when not _dropped;
    end loop;
end
$$
