-- pgcombine_internal.descendants(source) → set of regclass
-- Returns a table and all tables that inherit from it or are its partitions, at any depth. A temporary table doesn't
-- count, since other sessions can't read it.
create or replace function pgcombine_internal.descendants(source regclass)
returns setof regclass
language sql stable
as $$
    with recursive tree (relation) as (
        select descendants.source::oid
        union
        select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.relation
        join pg_class c on c.oid = i.inhrelid and c.relpersistence <> 't'
    )
    select t.relation::regclass from tree t
$$;
