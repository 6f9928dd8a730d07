-- pgcombine_internal.handoff_accepts(queue, token, number) → boolean
-- Returns whether this server still lacks an update that it once refused. If so, the function deletes the record in
-- handoff_refused, and the caller's transaction must insert the update.
-- Runs with its owner's rights, for roles that may insert into the queue's updates.
-- Tables written: handoff_refused.
-- Errors: 42501 the caller lacks the right to replicate writes of the queue; PC001 unknown queue.
create or replace function pgcombine_internal.handoff_accepts(queue text, token uuid, number integer)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.handoff_require(queue);
    delete from pgcombine.handoff_refused f
    where f.queue = handoff_accepts.queue and f.token = handoff_accepts.token and f.number = handoff_accepts.number;
    return found;
end
$$;
