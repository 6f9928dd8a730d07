-- pgcombine_internal.destination_failed(kind, name, reason [, ticket]) → text
-- Reports an attempt that failed because of the destination's health; returns the state that follows: suspect, down
-- after down_after failures in a row, or paused as before.
-- The destination is then left alone for a while. The wait doubles with each failure, between backoff and
-- longest_backoff, and varies by a quarter, so that waiting workers don't come back together.
--   reason  the error; it must not contain a password
--   ticket  the attempt's, from try_destination. Attempts that were under way together have the same ticket and count
--           as one failure. Null: the failure counts in any case
-- Runs with its owner's rights, for the roles that may deliver there (require_deliverer).
-- Tables written: pgcombine.destination_state.
-- Errors: 42501 the caller may not deliver there; PC020 unknown destination.
create or replace function pgcombine_internal.destination_failed(kind text, name text, reason text,
    ticket bigint default null)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _state pgcombine.destination_state;
begin
    perform pgcombine_internal.require_deliverer(destination_failed.kind, destination_failed.name);
    _state := pgcombine_internal.require_destination(destination_failed.kind, destination_failed.name);
    update pgcombine.destination_state d
    set state = case when d.state = 'paused' then 'paused' when d.failures + 1 >= d.down_after then 'down'
        else 'suspect' end,
        since = case when d.state = 'paused' or d.state = case when d.failures + 1 >= d.down_after then 'down'
            else 'suspect' end
                     then d.since else clock_timestamp() end,
        failures = least(d.failures, 1000000) + 1,
        ticket = d.ticket + 1,
        reason = case d.state when 'paused' then d.reason else left(destination_failed.reason, 2000) end,
        last_failure = clock_timestamp(),
        retry_at = clock_timestamp()
                   + least(d.longest_backoff, d.backoff * 2 ^ least(d.failures, 30)) * (0.75 + random() / 2)
    where d.kind = _state.kind and d.name = _state.name
      and (destination_failed.ticket is null or d.ticket = destination_failed.ticket)
    returning d.state into _state.state;
    if not found then
        _state := pgcombine_internal.require_destination(destination_failed.kind, destination_failed.name);
    end if;
    return _state.state;
end
$$;
