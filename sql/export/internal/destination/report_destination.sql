-- pgcombine_internal.report_destination(kind, name [, ticket, failure, wait]) → text
-- Reports an attempt at a destination; returns the state that follows.
-- After a success, a destination that was suspect or down is up again, and the workers of an export are woken. While
-- the destination is up, the time of the last success is written about once a minute.
-- After a failure the destination is suspect, or down after down_after failures in a row, and isn't tried for a while.
-- The wait doubles with each failure, from backoff up to longest_backoff, and varies by a quarter.
-- A paused destination stays paused.
--   ticket   the ticket that try_destination returned for the attempt. If the destination has another ticket by now,
--            this report changes nothing, so attempts that were in progress together count as one failure. Null: the
--            ticket isn't compared
--   failure  the error, if the attempt failed because of the destination's health; it must not contain a password.
--            Null: the attempt succeeded
--   wait     how long the destination asked to be left alone: it isn't tried earlier. More than an hour counts as an
--            hour
-- Tables written: pgcombine.destination_state.
-- Errors: PC020 unknown destination.
create or replace function pgcombine_internal.report_destination(kind text, name text, ticket bigint default null,
    failure text default null, wait interval default null)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _state pgcombine.destination_state;
    _after text;
begin
    perform pgcombine_internal.require_right(null, 'work');
    _state := pgcombine_internal.require_destination(report_destination.kind, report_destination.name);
    if failure is null and _state.state = 'up' and _state.last_success > clock_timestamp() - interval '1 minute' then
        return _state.state;
    end if;
    select d.* into _state from pgcombine.destination_state d
    where d.kind = _state.kind and d.name = _state.name
      and (report_destination.ticket is null or d.ticket = report_destination.ticket)
    for no key update;
    if not found then
        return (pgcombine_internal.require_destination(report_destination.kind, report_destination.name)).state;
    end if;
    _after := case when _state.state = 'paused' then 'paused' when failure is null then 'up'
        when _state.failures + 1 >= _state.down_after then 'down' else 'suspect' end;
    update pgcombine.destination_state d
    set state = _after,
        since = case when d.state = _after then d.since else clock_timestamp() end,
        failures = case when failure is null then 0 else least(d.failures, 1000000) + 1 end,
        ticket = d.ticket + case when failure is null and d.state in ('up', 'paused') then 0 else 1 end,
        reason = case d.state when 'paused' then d.reason else left(failure, 2000) end,
        retry_at = case when failure is not null then clock_timestamp()
            + greatest(least(d.longest_backoff, d.backoff * 2 ^ least(d.failures, 30)) * (0.75 + random() / 2),
                case when wait > '1 hour' then '1 hour' else wait end) end, -- least() ignores null
        last_success = case when failure is null then clock_timestamp() else d.last_success end,
        last_failure = case when failure is null then d.last_failure else clock_timestamp() end
    where d.kind = _state.kind and d.name = _state.name;
    if _state.kind = 'export' and _after = 'up' and _state.state <> 'up' then
        perform pg_notify('pgcombine.export ' || _state.name, '');
    end if;
    return _after;
end
$$;
