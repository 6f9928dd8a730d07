-- pgcombine.handoff_check(server, queue, shape)
-- That a write has come to the right server, and that its queue is what the sender took it for.
--   server  the id that handoff_hello told
-- Until the transaction ends no rebuild of this server begins.
-- Errors: PC042 another server; PC043 the queue isn't there or is defined otherwise; PC046 it is being rebuilt.
create or replace function pgcombine.handoff_check(server uuid, queue text, shape uuid)
returns void
language plpgsql
as $$
declare
    _shape constant uuid := pgcombine.handoff_shape(handoff_check.queue);
begin
    if _shape is not null then
        perform pgcombine.handoff_enter(handoff_check.queue);
    end if;
    if not exists (select from pgcombine.handoff_server s where s.id = handoff_check.server) then
        raise exception 'this is not server %', handoff_check.server
            using errcode = 'PC042', hint = 'another server answers at its address, or it was made anew';
    end if;
    if _shape is distinct from handoff_check.shape then
        raise exception 'queue "%" %', handoff_check.queue,
            case when _shape is null then 'isn''t on this server' else 'is defined otherwise on this server' end
            using errcode = 'PC043', hint = 'define it alike on all servers';
    end if;
end
$$;
