-- pgcombine_internal.destination_delivered(kind, name [, ticket]) → text
-- Reports a successful attempt; returns the state that follows.
-- A destination that was suspect or down is up again, and the workers of an export are woken. A paused one stays
-- paused. While the destination is up, the time of the last success is written at most once a minute.
--   ticket  the attempt's, from try_destination. If a failure, a pause or another attempt was recorded since, this
--           success proves nothing and changes nothing. Null: the success counts in any case
-- Runs with its owner's rights, for the roles that may deliver there (require_deliverer).
-- Tables written: pgcombine.destination_state, if the state changes or the time of the last success is written.
-- Errors: 42501 the caller may not deliver there; PC020 unknown destination.
create or replace function pgcombine_internal.destination_delivered(kind text, name text, ticket bigint default null)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _state pgcombine.destination_state;
    _after text;
begin
    perform pgcombine_internal.require_deliverer(destination_delivered.kind, destination_delivered.name);
    _state := pgcombine_internal.require_destination(destination_delivered.kind, destination_delivered.name);
    if _state.state = 'up' and _state.last_success > clock_timestamp() - interval '1 minute' then
        return _state.state;
    end if;
    update pgcombine.destination_state d
    set state = case d.state when 'paused' then 'paused' else 'up' end,
        failures = 0,
        retry_at = null,
        reason = case d.state when 'paused' then d.reason end,
        since = case when d.state in ('up', 'paused') then d.since else clock_timestamp() end,
        ticket = d.ticket + case when d.state in ('up', 'paused') then 0 else 1 end,
        last_success = clock_timestamp()
    where d.kind = _state.kind and d.name = _state.name
      and (destination_delivered.ticket is null or d.ticket = destination_delivered.ticket)
    returning d.state into _after;
    if not found then
        return (pgcombine_internal.require_destination(_state.kind, _state.name)).state;
    end if;
    if _state.kind = 'export' and _after = 'up' and _state.state <> 'up' then
        perform pg_notify(pgcombine_internal.channel('export ' || _state.name), '');
    end if;
    return _after;
end
$$;
