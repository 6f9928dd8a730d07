-- pgcombine_internal.resume_destination(kind, name)
-- Ends a destination's pause, or its wait if it is suspect or down: the destination is up and may be tried at once.
-- Wakes the workers of an export.
-- Tables written: pgcombine.destination_state.
-- Errors: PC020 unknown destination.
create or replace function pgcombine_internal.resume_destination(kind text, name text)
returns void
language plpgsql
as $$
declare
    _state pgcombine.destination_state;
begin
    perform pgcombine_internal.require_right(null, 'work');
    _state := pgcombine_internal.require_destination(resume_destination.kind, resume_destination.name);
    update pgcombine.destination_state d
    set state = 'up', ticket = d.ticket + 1, failures = 0, retry_at = null, reason = null, since = clock_timestamp()
    where d.kind = _state.kind and d.name = _state.name and d.state <> 'up';
    if _state.kind = 'export' then
        perform pg_notify('pgcombine.export ' || _state.name, '');
    end if;
end
$$;
