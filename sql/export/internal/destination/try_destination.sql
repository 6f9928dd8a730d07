-- pgcombine_internal.try_destination(kind, name [, probe]) → bigint
-- Returns a ticket for report_destination if a destination may be tried now, and null if not.
-- If the destination is up, every caller gets a ticket, and nothing is written. If it is suspect or down, it may be
-- tried after retry_at, by one caller at a time. Other callers get null until that caller has reported, or until the
-- time of its probe is over. A paused destination may not be tried.
-- Call the function in a separate transaction: other callers see the probe only after the commit, and until then they
-- find the row locked.
--   probe  how long other callers get null if this caller doesn't report
-- Tables written: pgcombine.destination_state, if the destination is suspect or down and may be tried.
-- Errors: PC020 unknown destination; PC003 a probe that isn't
-- positive.
create or replace function pgcombine_internal.try_destination(kind text, name text, probe interval default '1 min')
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _state pgcombine.destination_state;
    _ticket bigint;
begin
    perform pgcombine_internal.require_right(null, 'work');
    _state := pgcombine_internal.require_destination(try_destination.kind, try_destination.name);
    if coalesce(probe <= '0', true) then
        raise exception 'invalid time for a probe: %', coalesce(probe::text, 'null')
            using errcode = 'PC003', hint = 'give a positive interval';
    end if;
    if _state.state = 'up' then
        return _state.ticket;
    end if;
    if _state.state = 'paused' or _state.retry_at > clock_timestamp() then
        return null;
    end if;
    -- the condition is checked again, since another caller may have moved retry_at since the row was read
    perform from pgcombine.destination_state d
    where d.kind = _state.kind and d.name = _state.name and d.state in ('suspect', 'down')
      and coalesce(d.retry_at <= clock_timestamp(), true)
    for update skip locked;
    if not found then
        return null;
    end if;
    update pgcombine.destination_state d
    set ticket = d.ticket + 1, retry_at = clock_timestamp() + probe
    where d.kind = _state.kind and d.name = _state.name
    returning d.ticket into _ticket;
    return _ticket;
end
$$;
