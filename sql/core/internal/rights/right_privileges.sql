-- pgcombine_internal.right_privileges(right [, subject]) → setof text
-- Returns the privileges of a right in the wording of GRANT and REVOKE: 'select on pgcombine.wc_values'. grant_right
-- grants these privileges.
--   subject  a queue, or an object of a component. Null: the privileges that depend on no subject
-- Errors: PC001 unknown queue, or the component's error for an unknown object.
create or replace function pgcombine_internal.right_privileges("right" text, subject text default null)
returns setof text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _right constant text := right_privileges."right";
    _subject constant text := right_privileges.subject;
begin
    if _subject is not null then
        execute format('select pgcombine_internal.require_%s($1)',
            (select k.subject from pgcombine.right_kind k where k."right" = _right)) using _subject;
    end if;
    return query
    select o.privilege || ' on ' || t.relation
    from pgcombine.right_privilege l
    cross join lateral (
        select l.relation where _subject is null and l.relation like '%.%'
        union
        select r::text from to_regclass('pgcombine.' || quote_ident(_subject || l.relation)) r where r is not null
        union
        select p.relid::text from pg_partition_tree(to_regclass('pgcombine.' || quote_ident(_subject || l.relation))) p
        where l.partitions
    ) t (relation)
    cross join unnest(l.privileges) p
    cross join lateral (
        select p where p not like '%(*)'
        union all -- only the columns of the queue's definition, not pgcombine_tx
        select replace(p, '(*)', format('(%I)', c.name)) from pgcombine.queue_column c
        where p like '%(*)' and c.queue = _subject
    ) o (privilege)
    where l."right" = _right
    union all -- passes insert into the tables of components, and operators put quarantined rows back into them
    select 'insert on ' || format('pgcombine.%I', t.name)
    from pgcombine.component_table t
    where t.queue = _subject and _right in ('work', 'operate');
end
$$;
