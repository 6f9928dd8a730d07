-- pgcombine_internal.rollup_problems(rollup) → (problem)
-- Returns a row for each reason why a rollup may miss changes of its source. The function reads no rows of the source.
create or replace function pgcombine_internal.rollup_problems(rollup text)
returns table (problem text)
language sql stable
as $$
    with rollup as (
        select r.* from pgcombine_internal.get_rollup(rollup_problems.rollup) r where r.queue is not null)
    select format('the source of rollup "%s" was dropped: drop the rollup', r.queue)
    from rollup r where not exists (select from pg_class c where c.oid = r.source)
    union all
    select format('something that rollup "%s" of %s reads was dropped: drop the rollup, and make it again', r.queue,
        r.source)
    from rollup r join pg_class c on c.oid = r.source where r.definition is null
    union all
    select format('the expression of the generated column "%s" of %s was changed: drop rollup "%s", and make it again',
        g.name, r.source, r.queue)
    from rollup r cross join lateral pgcombine_internal.generated_columns(r) g
    where g.changed and r.definition is not null
    union all
    select format('trigger %s of %s is %s: run pgcombine db upgrade', t.name, t.relation, t.state)
    from rollup r cross join lateral pgcombine_internal.rollup_triggers(r.queue) t
    where t.state is not null
    union all
    select format('%s is unlogged, so a crash empties it unnoticed: alter table %s set logged', d, d)
    from rollup r cross join lateral pgcombine_internal.descendants(r.source) d
    join pg_class c on c.oid = d and c.relpersistence = 'u'
    union all
    select format('%s has become a part of %s, and changes by statements on that table are missed: drop rollup "%s", '
        'and make it of the whole table', r.source, i.inhparent::regclass, r.queue)
    from rollup r join pg_inherits i on i.inhrelid = r.source
    union all
    select format('%s is no part of %s any more: run select pgcombine.verify_rollup(%L, repair => true)',
        c.oid::regclass, r.source, r.queue)
    from rollup r join pgcombine.rollup_part p on p.queue = r.queue join pg_class c on c.oid = p.part
    where p.part not in (select d from pgcombine_internal.descendants(r.source) d)
    union all
    select format('%s has a new owner, something that rollup "%s" reads was renamed, or a function of the rollup was '
        'altered: run pgcombine db upgrade', r.source, r.queue)
    from rollup r where pgcombine_internal.rollup_outdated(r)
    union all
    select format('row security hides rows of %s from role "%s", which computes columns of rollup "%s"', r.source,
        pg_get_userbyid(v.relowner), r.queue)
    from rollup r
    join pg_class c on c.oid = r.source and c.relrowsecurity
    join pg_class v on v.relnamespace = 'pgcombine'::regnamespace and v.relname = r.queue || '_source'
    where (c.relforcerowsecurity or not pg_has_role(v.relowner, c.relowner, 'usage'))
      and not (select o.rolsuper or o.rolbypassrls from pg_roles o where o.oid = v.relowner)
$$;
