-- pgcombine_internal.pause_destination(kind, name [, reason])
-- Pauses a destination: try_destination returns null until the destination is resumed. An attempt in progress isn't
-- stopped.
--   reason  why it is paused; null: the former reason stays
-- Tables written: pgcombine.destination_state.
-- Errors: PC020 unknown destination.
create or replace function pgcombine_internal.pause_destination(kind text, name text, reason text default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.require_right(null, 'work');
    perform pgcombine_internal.require_destination(pause_destination.kind, pause_destination.name);
    update pgcombine.destination_state d
    set state = 'paused', ticket = d.ticket + 1, reason = coalesce(left(pause_destination.reason, 2000), d.reason),
        since = case d.state when 'paused' then d.since else clock_timestamp() end
    where d.kind = pause_destination.kind and d.name = pause_destination.name;
end
$$;
