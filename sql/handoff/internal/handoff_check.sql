-- pgcombine_internal.handoff_check(server, queue, shape)
-- Raises an error unless a write has come to the right server and the queue has the shape that the sender knows. Until
-- the transaction ends, a rebuild of this server waits (see handoff_rebuild_begin).
--   server  the id that handoff_handshake returned
--   shape   the queue's shape at the sender
-- If the sender's queue is of a later generation, this server's queue has no tokens, and the caller works, the
-- function raises no error but gives the queue that generation (see handoff_generation).
-- Runs with its owner's rights, for roles that may insert into the queue's updates: the lock needs a privilege to
-- write.
-- Tables written: handoff_queue.
-- Errors: PC042 this server has another id; PC043 the queue is missing, has another definition here, or was dropped and
-- created again on one side; PC046 this server is being rebuilt; 42501 the caller lacks the right to replicate writes.
create or replace function pgcombine_internal.handoff_check(server uuid, queue text, shape uuid)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _shape constant uuid := pgcombine_internal.handoff_shape(queue);
    _generation integer;
    _later integer;
begin
    perform pgcombine_internal.handoff_require(case when _shape is not null then queue end);
    begin
        lock table pgcombine.handoff_partial in row exclusive mode nowait;
    exception when lock_not_available then
        raise exception 'this server is being rebuilt'
            using errcode = 'PC046', hint = 'write to another server, which keeps hints for this one';
    end;
    perform pgcombine_internal.require(
        exists (select from pgcombine.handoff_server s where s.id = server),
        'PC042', format('this is not server %s', server),
        'another server answers at its address, or its data were replaced: check the address');
    if _shape is null or _shape is distinct from shape then
        _later := pgcombine_internal.handoff_generation(queue, shape);
        _generation := pgcombine_internal.handoff_generation(queue, _shape);
        if _later > _generation and pgcombine_internal.has_right(null, 'work', pgcombine_internal.caller())
           and not exists (select from pgcombine.handoff_token k where k.queue = handoff_check.queue) then
            insert into pgcombine.handoff_queue as q (queue, generation) values (handoff_check.queue, _later)
            on conflict on constraint handoff_queue_pkey do update set generation = excluded.generation
            where q.generation < excluded.generation;
            if found then
                return;
            end if;
        end if;
        raise exception 'queue "%" %', queue,
            case when _shape is null then 'isn''t on this server'
                 when _later is null then 'has another definition on this server'
                 when _later < _generation
                     then 'was dropped on this server and created again: the write is for the former queue'
                 else 'on this server is the former queue: it was dropped and created again where the write comes '
                     'from' end
            using errcode = 'PC043', hint = case when _later <> _generation
                then 'drop it and create it again on all servers; or make this server a copy of another one: '
                    'pgcombine replicas rebuild'
                else 'give it the same definition on all servers' end;
    end if;
end
$$;
