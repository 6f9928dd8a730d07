-- pgcombine_internal.require_movable(queue)
-- Raises an error unless a move of the queue of a shard loses nothing. The queue must not be paused, have observers or
-- quarantined keys, be a tier, be on several servers, or be used by another component. Keeps other sessions from moving
-- the queue until the session ends. The lock of begin_move doesn't do that, since a front of another database may have
-- the queue as a shard, too.
-- Errors: PC001 unknown queue; PC005 a move would lose something; PC006 another session moves the queue.
create or replace function pgcombine_internal.require_movable(queue text)
returns void
language plpgsql
as $$
declare
    _query text;
    _problem text;
    _hint text;
begin
    perform pgcombine_internal.lock_move('pgcombine.move_shard', queue);
    perform pgcombine_internal.require(not (pgcombine_internal.require_queue(queue)).paused, 'PC005',
        format('queue "%s" is paused', queue), 'resume it, and pause it again after the move');
    for _query in select h.query from pgcombine.hook h where h.event = 'close' loop
        for _problem, _hint in execute _query using queue loop
            perform pgcombine_internal.require(_problem is null, 'PC005', _problem, _hint);
        end loop;
    end loop;
    perform pgcombine_internal.require(
        not exists (select from pgcombine.observer o where o.queue = require_movable.queue), 'PC005',
        format('queue "%s" has observers', require_movable.queue), 'drop them, and add them again after the move');
    perform pgcombine_internal.require(
        not exists (select from pgcombine.observer o where o.observer = 'tier ' || require_movable.queue), 'PC005',
        format('queue "%s" is a tier of another queue', require_movable.queue), 'drop it first');
    perform pgcombine_internal.require(
        not exists (select from pgcombine.handoff_queue h
                    where h.queue = require_movable.queue and h.servers is not null), 'PC005',
        format('queue "%s" is on several servers', require_movable.queue),
        'leave it where it is: its replicas wouldn''t follow');
    perform pgcombine_internal.require(
        not exists (select from pgcombine.quarantined_key k where k.queue = require_movable.queue), 'PC005',
        format('queue "%s" has quarantined keys', require_movable.queue),
        'call retry_quarantined or drop_quarantined first');
end
$$;
