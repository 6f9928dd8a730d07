-- pgcombine_internal.handoff_forget(name)
-- Adds the acknowledgements of a server to its totals, and deletes them. It is for a server that was replaced or
-- rebuilt: such a server needn't remember the tokens of earlier deliveries.
-- Tables written: handoff_delivery, handoff_replica.
create or replace function pgcombine_internal.handoff_forget(name text)
returns void
language sql
as $$
    with gone as (
        delete from pgcombine.handoff_delivery d where d.destination = handoff_forget.name
        returning d.delivered, d.deduplicated
    )
    update pgcombine.handoff_replica r
    set delivered = r.delivered + g.delivered, deduplicated = r.deduplicated + g.deduplicated
    from (select coalesce(sum(delivered), 0) as delivered, coalesce(sum(deduplicated), 0) as deduplicated from gone) g
    where r.name = handoff_forget.name
$$;
