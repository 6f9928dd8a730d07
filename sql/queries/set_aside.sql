-- Makes the temporary table "older", which lists the functions as they are now, and temporary functions with which an
-- upgrade removes an older version's functions and views.
--
-- If a function's parameters change, create or replace makes a second function beside the older one, and calls may be
-- ambiguous. If a view's columns change, create or replace may fail. So the upgrade renames the older function or view.
-- Unlike a drop, this works although other objects depend on it. At the end the upgrade drops what it has renamed,
-- except for what other objects still depend on.

create temporary table older on commit drop as
select p.oid as routine, p.ctid as version
from pg_proc p
where p.pronamespace in (to_regnamespace('pgcombine'), to_regnamespace('pgcombine_internal'));

-- pg_temp.made() → array of oid
-- Returns the functions that were created, replaced or altered after the temporary table "older" was made.
create or replace function pg_temp.made()
returns oid[]
language sql
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(p.oid), '{}')
    from pg_proc p
    where p.pronamespace in (to_regnamespace('pgcombine'), to_regnamespace('pgcombine_internal'))
      and not exists (select from pg_temp.older o where o.routine = p.oid and o.version = p.ctid)
$$;

-- pg_temp.set_aside(names, but, views)
-- Renames the functions with these names. From then on a renamed function runs with its caller's rights.
--   but    functions that keep their names
--   views  whether to rename the views of these names, too
create or replace function pg_temp.set_aside(names name[], but oid[], views boolean)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _o record;
begin
    for _o in
        select p.oid, p.oid::regprocedure::text as object, 'routine' as kind, p.proname as name, p.prosecdef as definer
        from pg_proc p
        where p.pronamespace in (to_regnamespace('pgcombine'), to_regnamespace('pgcombine_internal'))
          and p.proname = any (names) and p.oid <> all (but)
        union all
        select c.oid, c.oid::regclass::text, 'view', c.relname, false
        from pg_class c
        where views and c.relnamespace = to_regnamespace('pgcombine') and c.relkind = 'v' and c.relname = any (names)
    loop
        continue when _o.name like 'gone %';
        if _o.definer then
            execute format('alter routine %s security invoker', _o.object);
        end if;
        -- pgcombine's own functions and views have no space in their names
        execute format('alter %s %s rename to %I', _o.kind, _o.object, format('gone %s %s', _o.oid, _o.name));
    end loop;
end
$$;

-- pg_temp.apply(statements)
-- Applies a file of sql/. If create or replace fails because a routine's result or parameters or a view's columns have
-- changed, the function sets aside the older routine or view and tries again.
create or replace function pg_temp.apply(statements text)
returns void
language plpgsql
as $$
begin
    execute statements;
exception when invalid_function_definition or invalid_table_definition or wrong_object_type then
    perform pg_temp.set_aside(
        array(select m[1] from regexp_matches(statements,
            '^create or replace (?:function|procedure|aggregate|view) \w+\.(\w+)', 'gn') m),
        pg_temp.made(), true);
    execute statements;
end
$$;

-- pg_temp.drop_set_aside()
-- Drops the functions and views that this and earlier upgrades have set aside, except for those on which other objects
-- depend. Warns of each that stays, and names the objects that depend on it. A view that stays then raises an error
-- when it is read.
create or replace function pg_temp.drop_set_aside()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _o record;
    _dependants text;
begin
    for _o in
        select p.tableoid as class, p.oid, p.oid::regprocedure::text as object, 'routine' as kind,
               split_part(p.proname, ' ', 3) as name
        from pg_proc p
        where p.pronamespace in (to_regnamespace('pgcombine'), to_regnamespace('pgcombine_internal'))
          and p.proname like 'gone %'
        union all
        select c.tableoid, c.oid, c.oid::regclass::text, 'view', split_part(c.relname, ' ', 3)
        from pg_class c
        where c.relnamespace = to_regnamespace('pgcombine') and c.relkind = 'v' and c.relname like 'gone %'
        order by 4 desc, 2 desc -- views and newer objects first, since they may depend on the others
    loop
        begin
            execute format('drop %s %s', _o.kind, _o.object);
        exception when dependent_objects_still_exist then
            select string_agg(d.what || coalesce(' of role "' || d.owner || '"', ''), ', ' order by d.what)
                into _dependants
            from pg_temp.dependants(_o.class, _o.oid) d;
            if _o.kind = 'view' then
                execute (
                    select format('create or replace view %s as select %s
                                   from pgcombine_internal.require(false, ''42704'', %L, ''drop what reads it'')',
                        _o.object, string_agg(format('null::%s%s as %I', format_type(a.atttypid, a.atttypmod),
                            ' collate ' || nullif(a.attcollation, 0)::regcollation, a.attname), ', ' order by a.attnum),
                        format('pgcombine has replaced the view %s by one with other columns', _o.name))
                    from pg_attribute a where a.attrelid = _o.oid and a.attnum > 0);
            end if;
            raise warning 'pgcombine has kept % % of an older version, since % depends on it', _o.kind, _o.name,
                _dependants
                using hint = format('drop those objects, since they no longer work; the %s is now %s, until an upgrade '
                    'finds nothing that depends on it', _o.kind, _o.object);
        end;
    end loop;
end
$$;

-- pg_temp.dependants(class, object) → (what, owner)
-- Lists the objects that depend directly on a function or view, with their owners.
create or replace function pg_temp.dependants(class oid, object oid)
returns table (what text, owner name)
language sql
set search_path = pg_catalog, pg_temp
as $$
    select pg_describe_object(o.classid, o.objid, o.objsubid),
        pg_get_userbyid(coalesce(c.relowner, y.typowner, s.refobjid))
    from (
        select distinct case when r.oid is null then d.classid else 'pg_class'::regclass end as classid,
               coalesce(r.ev_class, d.objid) as objid, case when r.oid is null then d.objsubid else 0 end as objsubid
        from pg_depend d
        left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
        where d.refclassid = class and d.refobjid = object and d.deptype not in ('i', 'P', 'S')
          and r.ev_class is distinct from object
    ) o
    left join pg_attrdef f on o.classid = 'pg_attrdef'::regclass and f.oid = o.objid
    left join pg_constraint n on o.classid = 'pg_constraint'::regclass and n.oid = o.objid
    left join pg_type y on y.oid = n.contypid
    left join pg_trigger t on o.classid = 'pg_trigger'::regclass and t.oid = o.objid
    left join pg_policy p on o.classid = 'pg_policy'::regclass and p.oid = o.objid
    left join pg_class c on c.oid = coalesce(f.adrelid, nullif(n.conrelid, 0), t.tgrelid, p.polrelid,
        case when o.classid = 'pg_class'::regclass then o.objid end)
    left join pg_shdepend s on s.classid = o.classid and s.objid = o.objid and s.deptype = 'o'
        and s.dbid = (select b.oid from pg_database b where b.datname = current_database())
$$
