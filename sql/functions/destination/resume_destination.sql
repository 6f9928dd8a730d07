-- pgcombine.resume_destination(kind, name)
-- The destination is up and is tried at once: a paused one, and one that is suspect or down and needn't be waited
-- for any longer. Wakes the workers of an export.
-- Tables written: pgcombine.destination_state.
-- Errors: PC020 unknown destination.
create or replace function pgcombine.resume_destination(kind text, name text)
returns void
language plpgsql
as $$
declare
    _state constant pgcombine.destination_state := pgcombine.require_destination(resume_destination.kind, resume_destination.name);
begin
    update pgcombine.destination_state d
    set state = 'up', ticket = d.ticket + 1, failures = 0, retry_at = null, reason = null, since = clock_timestamp()
    where d.kind = _state.kind and d.name = _state.name and d.state <> 'up';
    if _state.kind = 'export' then
        perform pg_notify(pgcombine.channel('export ' || _state.name), '');
    end if;
end
$$;
