-- pgcombine.handoff_lags(queue) → (destination, writes)
-- How many writes to a queue wait here for each other server.
create or replace function pgcombine.handoff_lags(queue text, out destination text, out writes bigint)
returns setof record
language sql stable
as $$
    select h.destination, count(*) from pgcombine.handoff_hint h where h.queue = handoff_lags.queue group by h.destination
$$;
