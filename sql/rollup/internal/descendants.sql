-- pgcombine_internal.descendants(source) → set of regclass
-- Returns a table and all tables that inherit from it or are its partitions, at any depth.
create or replace function pgcombine_internal.descendants(source regclass)
returns setof regclass
language sql stable
as $$
    with recursive tree (relation) as (
        select descendants.source::oid
        union
        select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.relation
    )
    select t.relation::regclass from tree t
$$;
