-- pgcombine.handoff_pause(name [, reason])
-- Stops deliveries to a server; hints for it are kept.
-- Tables written: handoff_replica.
-- Errors: PC045 it isn't registered.
create or replace function pgcombine.handoff_pause(name text, reason text default 'by hand')
returns void
language plpgsql
as $$
begin
    update pgcombine.handoff_replica r
    set state = 'paused', reason = handoff_pause.reason, retry_at = null
    where r.name = handoff_pause.name;
    if not found then
        raise exception 'server "%" is not registered here', handoff_pause.name
            using errcode = 'PC045', hint = 'pgcombine replicas ls lists those that are';
    end if;
end
$$;
