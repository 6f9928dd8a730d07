-- pgcombine_internal.handoff_succeed(queue, generation) → boolean
-- Gives a queue a later generation (handoff_generation), if no write has come to it yet: this server had no part in the
-- queue of that name that the others dropped. Returns whether it did.
-- Runs with its owner's rights, for roles that may insert into the queue's updates. Does nothing unless the caller may
-- replay, too: a server with another generation than the others refuses their hints.
-- Tables written: handoff_queue.
-- Errors: 42501 the caller may not hand on writes of the queue; PC001 unknown queue.
create or replace function pgcombine_internal.handoff_succeed(queue text, generation integer)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.handoff_require(handoff_succeed.queue);
    if handoff_succeed.generation is null or not pgcombine_internal.has_right('', 'replay', pgcombine_internal.caller())
       or exists (select from pgcombine.handoff_token k where k.queue = handoff_succeed.queue) then
        return false;
    end if;
    insert into pgcombine.handoff_queue as q (queue, generation)
    values (handoff_succeed.queue, handoff_succeed.generation)
    on conflict on constraint handoff_queue_pkey do update set generation = excluded.generation
    where q.generation < excluded.generation;
    return found;
end
$$;
