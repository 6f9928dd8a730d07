-- Drops other roles' objects because of which a revision failed, and warns of each. Objects that depend on these are
-- dropped without a warning. Returns whether any were dropped.
-- The function drops views, rules, policies, triggers, functions and procedures that the detail of the revision's error
-- names, unless the current role or a superuser owns them.
--   detail  the detail of PostgreSQL's error, a line for each object
create or replace function pg_temp.drop_dependants(detail text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _o record;
    _definition text;
    _dropped boolean := false;
begin
    for _o in
        with own (class, object) as (
            select c.tableoid, c.oid
            from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where n.nspname in ('pgcombine', 'pgcombine_internal')
            union all
            select t.tableoid, t.oid
            from pg_type t join pg_namespace n on n.oid = t.typnamespace
            where n.nspname in ('pgcombine', 'pgcombine_internal')
        ), dependant as (
            select d.classid, d.objid, coalesce(r.ev_class, t.tgrelid, p.polrelid) as relation,
                   r.rulename = '_RETURN' as is_view
            from own o
            join pg_depend d on d.refclassid = o.class and d.refobjid = o.object and d.deptype = 'n' and d.objsubid = 0
            left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
            left join pg_trigger t on d.classid = 'pg_trigger'::regclass and t.oid = d.objid
            left join pg_policy p on d.classid = 'pg_policy'::regclass and p.oid = d.objid
        )
        select distinct i.type, i.identity, w.rolname as owner, case when d.is_view then d.relation end as view
        from dependant d
        left join pg_class c on c.oid = d.relation
        left join pg_shdepend s on s.classid = d.classid and s.objid = d.objid and s.deptype = 'o'
            and s.dbid = (select b.oid from pg_database b where b.datname = current_database())
        join pg_roles w on w.oid = coalesce(c.relowner, s.refobjid) and not w.rolsuper and w.rolname <> current_user
        cross join lateral (select case when d.is_view then 'pg_class'::regclass else d.classid end as class,
                                   case when d.is_view then d.relation else d.objid end as object) e
        cross join lateral pg_identify_object(e.class, e.object, 0) i
        where (c.oid, e.class) not in (select o.object, o.class from own o)
          and i.type in ('view', 'materialized view', 'rule', 'policy', 'trigger', 'function', 'procedure')
          and exists (select from string_to_table(detail, E'\n') line
                      where starts_with(line, pg_describe_object(d.classid, d.objid, 0) || ' ')
                         or starts_with(line, pg_describe_object(e.class, e.object, 0) || ' '))
    loop
        _definition := pg_get_viewdef(_o.view);
        begin
            execute format('drop %s %s cascade', _o.type, _o.identity);
        exception when undefined_object or undefined_table or undefined_function then
            continue; -- it is gone, for example since an earlier drop was cascaded to it
        end;
        _dropped := true;
        raise warning 'the upgrade has dropped the % % of role "%", since it depended on a changed table', _o.type,
            _o.identity, _o.owner
            using hint = 'its owner can create it again'
                || coalesce(': ' || regexp_replace(_definition, '\s+', ' ', 'g'), '');
    end loop;
    return _dropped;
end
$$
