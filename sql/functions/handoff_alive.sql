-- pgcombine.handoff_alive(name)
-- Records that a server took a delivery. Writes nothing where nothing changes.
-- Tables written: handoff_replica.
create or replace function pgcombine.handoff_alive(name text)
returns void
language sql
as $$
    update pgcombine.handoff_replica r
    set state = 'up', failures = 0, reason = null, retry_at = null
    where r.name = handoff_alive.name and r.state in ('suspect', 'down')
$$;
