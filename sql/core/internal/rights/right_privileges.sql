-- pgcombine_internal.right_privileges(right, queue [, lacking]) → (privileges, object)
-- Returns the privileges of a right in the wording of GRANT and REVOKE, such as select on pgcombine.wc_values. The
-- privilege execute is one on functions.
--   queue    a queue; null: the privileges that depend on no queue. The right work has all tables of the schema
--   lacking  only what this role lacks: of the right work, all privileges on the tables on which the role has none;
--            null: all
create or replace function pgcombine_internal.right_privileges("right" text, queue text, lacking name default null,
    out privileges text, out object text)
returns setof record
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select o.privileges, t.object
    from pgcombine.right_privilege l
    cross join lateral (
        select l.object where l.object ~ '[.]' and right_privileges.queue is null
        union all
        select r::text from to_regclass('pgcombine.' || quote_ident(right_privileges.queue || l.object)) r
        where l.object !~ '[.]' and r is not null
        union all
        select format('function %s', p.oid::regprocedure) from pg_proc p
        where l.privileges = 'execute' and p.pronamespace = 'pgcombine'::regnamespace
          and p.proname = right_privileges.queue || l.object) t (object)
    cross join lateral (
        select l.privileges where l.privileges not like '%(*)%'
        union all -- only the columns of the queue's definition, not pgcombine_tx
        select replace(l.privileges, '*', quote_ident(c.name)) from pgcombine.queue_column c
        where l.privileges like '%(*)%' and c.queue = right_privileges.queue) o (privileges)
    where l."right" = right_privileges."right"
      -- two transactions at a time can't grant on one table: tuple concurrently updated
      and (lacking is null or l."right" <> 'work' and not exists (
          select from pg_class c cross join aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
          where c.oid = to_regclass(l.object) and r.rolname = lacking and a.privilege_type = upper(l.privileges)))
    union all
    select case c.relkind when 'S' then 'usage, select, update' else 'select, insert, update, delete, truncate' end,
           case c.relkind when 'S' then 'sequence ' else '' end || c.oid::regclass
    from pg_class c
    where right_privileges."right" = 'work' and right_privileges.queue is null
      and c.relnamespace = 'pgcombine'::regnamespace and c.relkind in ('r', 'p', 'v', 'S')
      and not exists (select from aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
                      where r.rolname = lacking and a.privilege_type in ('TRUNCATE', 'USAGE'))
$$;
