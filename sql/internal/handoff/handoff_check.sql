-- pgcombine_internal.handoff_check(server, queue, shape)
-- Raises unless a write has come to the right server and the queue has the shape that the sender knows.
--   server  the id that handoff_hello returned
-- Until the transaction ends no rebuild of this server can begin.
-- Errors: PC042 another server; PC043 the queue is missing or defined otherwise; PC046 this server is being rebuilt;
-- 42501 the caller may not hand on writes.
create or replace function pgcombine_internal.handoff_check(server uuid, queue text, shape uuid)
returns void
language plpgsql
as $$
declare
    _shape constant uuid := pgcombine_internal.handoff_shape(handoff_check.queue);
begin
    if _shape is not null then
        perform pgcombine_internal.handoff_enter(handoff_check.queue);
    end if;
    if not exists (select from pgcombine.handoff_server s where s.id = handoff_check.server) then
        raise exception 'this is not server %', handoff_check.server
            using errcode = 'PC042', hint = 'another server answers at its address, or its data were replaced: check the address';
    end if;
    if _shape is distinct from handoff_check.shape then
        raise exception 'queue "%" %', handoff_check.queue,
            case when _shape is null then 'isn''t on this server' else 'has another definition on this server' end
            using errcode = 'PC043', hint = 'give it the same definition on all servers';
    end if;
end
$$;
