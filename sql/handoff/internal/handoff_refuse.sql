-- pgcombine_internal.handoff_refuse(queue, token, numbers, payloads, sqlstates, errors)
-- Stores those updates of a write that this server refused for their data. The server has the write's token as if it
-- had all of the write. So these rows tell which updates it lacks, even if the write's coordinator is lost.
-- Runs with its owner's rights, for roles that may insert into the queue's updates.
-- Tables written: handoff_refused.
-- Errors: 42501 the caller lacks the right to replicate writes of the queue; PC001 unknown queue; those of
-- handoff_size.
create or replace function pgcombine_internal.handoff_refuse(queue text, token uuid, numbers integer[], payloads text[],
    sqlstates text[], errors text[])
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.handoff_require(queue);
    perform pgcombine_internal.handoff_size(handoff_refuse.queue, p) from unnest(payloads) p;
    insert into pgcombine.handoff_refused (token, number, queue, payload, sqlstate, error)
    select k.token, u.number, k.queue, u.payload, u.sqlstate, u.error
    from pgcombine.handoff_token k,
         unnest(numbers, payloads, sqlstates, errors)
         u (number, payload, sqlstate, error)
    where k.token = handoff_refuse.token and k.queue = handoff_refuse.queue
    on conflict do nothing;
end
$$;
