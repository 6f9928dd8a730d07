-- Makes an ordinary role the owner of the database, and of the current role's objects in it. The embedded server runs
-- this as its superuser, so that functions with their owner's rights don't run as a superuser.
-- The setting pgcombine.owner names the role. The statement creates the role if it is missing. It leaves out
-- PostgreSQL's own objects, temporary objects, extensions with their objects, and kinds of objects that the query below
-- doesn't list, for example publications.
do $$
declare
    _owner constant name := current_setting('pgcombine.owner');
    _object record;
begin
    if not exists (select from pg_roles r where r.rolname = _owner) then
        execute format('create role %I login createdb in role pg_checkpoint, pg_read_all_stats', _owner);
    end if;
    execute format('alter database %I owner to %I', current_database(), _owner);
    for _object in
        select i.type, i.identity
        from (
            select 'pg_class'::regclass as class, c.oid, c.relowner as owner from pg_class c
            where c.relkind in ('r', 'p', 'v', 'm', 'f')
               or c.relkind = 'S' and not exists (select from pg_depend d
                   where (d.classid, d.objid) = ('pg_class'::regclass, c.oid)
                                                  and d.deptype in ('a', 'i')) -- such a sequence gets its table's owner
            union all
            select 'pg_type'::regclass, t.oid, t.typowner from pg_type t
            where not exists (select from pg_depend d where (d.classid, d.objid) = ('pg_type'::regclass, t.oid)
                and d.deptype = 'i')
            union all
            select 'pg_proc'::regclass, p.oid, p.proowner from pg_proc p
            union all
            select 'pg_namespace'::regclass, n.oid, n.nspowner from pg_namespace n
            union all
            select 'pg_operator'::regclass, o.oid, o.oprowner from pg_operator o
            union all
            select 'pg_opclass'::regclass, o.oid, o.opcowner from pg_opclass o
            union all
            select 'pg_opfamily'::regclass, o.oid, o.opfowner from pg_opfamily o
            union all
            select 'pg_collation'::regclass, c.oid, c.collowner from pg_collation c
            union all
            select 'pg_statistic_ext'::regclass, s.oid, s.stxowner from pg_statistic_ext s
            union all
            select 'pg_largeobject_metadata'::regclass, l.oid, l.lomowner from pg_largeobject_metadata l
        ) o
        cross join lateral pg_identify_object(o.class, o.oid, 0) i
        where o.oid >= 16384 -- PostgreSQL's own objects have lower ids
          and o.owner = (select r.oid from pg_roles r where r.rolname = current_user)
          and not exists (select from pg_depend d where (d.classid, d.objid) = (o.class, o.oid) and d.deptype = 'e')
          and i.schema is distinct from 'pg_toast' and i.identity !~ '^pg_(toast_)?temp_'
    loop
        execute format('alter %s %s owner to %I',
            case _object.type when 'statistics object' then 'statistics' else _object.type end,
            _object.identity, _owner);
    end loop;
end
$$;
