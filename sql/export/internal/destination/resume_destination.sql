-- pgcombine_internal.resume_destination(kind, name)
-- Ends a destination's pause, or its wait if it is suspect or down: the destination is up and may be tried at once.
-- Wakes the workers of an export.
-- Tables written: pgcombine.destination_state.
-- Errors: PC020 unknown destination; PC021 unknown export; 42501 for an export: the caller lacks the right to operate
-- its queue; for a server: the caller isn't the owner of the schema.
create or replace function pgcombine_internal.resume_destination(kind text, name text)
returns void
language plpgsql
as $$
declare
    _state pgcombine.destination_state;
begin
    if resume_destination.kind = 'export' then
        perform pgcombine_internal.require_right((pgcombine_internal.require_export(resume_destination.name)).queue,
            'operate');
    else
        perform pgcombine_internal.require_owner();
    end if;
    _state := pgcombine_internal.require_destination(resume_destination.kind, resume_destination.name);
    update pgcombine.destination_state d
    set state = 'up', ticket = d.ticket + 1, failures = 0, retry_at = null, reason = null, since = clock_timestamp()
    where d.kind = _state.kind and d.name = _state.name and d.state <> 'up';
    if _state.kind = 'export' then
        perform pg_notify('pgcombine.export ' || _state.name, '');
    end if;
end
$$;
