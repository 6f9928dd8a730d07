-- pgcombine_internal.handoff_check(server, queue, shape)
-- Raises unless a write has come to the right server and the queue has the shape that the sender knows.
--   server  the id that handoff_hello returned
-- Until the transaction ends no rebuild of this server can begin.
-- Tables written: handoff_queue (handoff_succeed).
-- Errors: PC042 another server; PC043 the queue is missing, is defined otherwise, or was dropped and created again on
-- one side; PC046 this server is being rebuilt; 42501 the caller may not hand on writes.
create or replace function pgcombine_internal.handoff_check(server uuid, queue text, shape uuid)
returns void
language plpgsql
as $$
declare
    _shape constant uuid := pgcombine_internal.handoff_shape(handoff_check.queue);
    _generation integer;
    _later integer;
begin
    if _shape is not null then
        perform pgcombine_internal.handoff_enter(handoff_check.queue);
    end if;
    if not exists (select from pgcombine.handoff_server s where s.id = handoff_check.server) then
        raise exception 'this is not server %', handoff_check.server
            using errcode = 'PC042',
                hint = 'another server answers at its address, or its data were replaced: check the address';
    end if;
    if _shape is distinct from handoff_check.shape then
        _later := pgcombine_internal.handoff_generation(handoff_check.queue, handoff_check.shape);
        _generation := pgcombine_internal.handoff_generation(handoff_check.queue, _shape);
        if _later > _generation then
            if pgcombine_internal.handoff_succeed(handoff_check.queue, _later) then
                return;
            end if;
        end if;
        raise exception 'queue "%" %', handoff_check.queue,
            case when _shape is null then 'isn''t on this server'
                 when _later is null then 'has another definition on this server'
                 when _later < _generation
                     then 'was dropped on this server and created again: the write is of the one before'
                 else 'on this server is the one before: where the write comes from, it was dropped and created '
                     'again' end
            using errcode = 'PC043', hint = case when _later <> _generation
                then 'drop it and create it again on all servers; or make this server a copy of another one: pgcombine '
                    'handoff rebuild'
                else 'give it the same definition on all servers' end;
    end if;
end
$$;
