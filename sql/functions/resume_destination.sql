-- pgcombine.resume_destination(kind, name)
-- The destination is up and is tried at once: a paused one, and one that is suspect or down and needn't be waited
-- for any longer.
-- Tables written: pgcombine.destination_state.
-- Errors: PC020 unknown destination.
create or replace function pgcombine.resume_destination(kind text, name text)
returns void
language plpgsql
as $$
begin
    perform pgcombine.require_destination(resume_destination.kind, resume_destination.name);
    update pgcombine.destination_state d
    set state = 'up', ticket = d.ticket + 1, failures = 0, retry_at = null, reason = null, since = clock_timestamp()
    where d.kind = resume_destination.kind and d.name = resume_destination.name and d.state <> 'up';
end
$$;
