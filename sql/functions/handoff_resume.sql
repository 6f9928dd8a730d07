-- pgcombine.handoff_resume(name)
-- Lets deliveries to a server go on, at once, whatever stopped them.
-- Tables written: handoff_replica.
-- Errors: PC045 it isn't registered.
create or replace function pgcombine.handoff_resume(name text)
returns void
language plpgsql
as $$
begin
    update pgcombine.handoff_replica r
    set state = 'up', failures = 0, reason = null, retry_at = null
    where r.name = handoff_resume.name;
    if not found then
        raise exception 'server "%" is not registered here', handoff_resume.name
            using errcode = 'PC045', hint = 'pgcombine replicas ls lists those that are';
    end if;
end
$$;
