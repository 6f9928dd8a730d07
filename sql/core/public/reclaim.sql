-- call pgcombine.reclaim([queue])
-- Truncates the segments of the log whose updates are all combined and no longer needed, and deletes old tokens of
-- enqueue_once (see trim_tokens). Without a name, the call does so for all queues.
-- Workers call it every second for queues over which they ran passes in the last minute, and now and then for the other
-- queues. A program that runs passes without workers should call it now and then.
-- If a session is writing or reading a segment, the call leaves the segment for a later call. It also leaves a segment
-- if some snapshot in the database can't see the pass that combined the segment's last update: the snapshot's holder
-- still sees updates of the segment as pending. If neither the caller nor the schema's owner may see which snapshots
-- are held (pg_read_all_stats), the call truncates nothing, and deletes combined updates in portions instead. The call
-- may leave small segments (see consumed_segments). In a copied database it does nothing (see own_cluster).
-- Call the procedure outside of a transaction: it commits after each segment, so that it holds no lock for long.
-- Tables written: <queue>_updates, pgcombine.token.
-- Errors: PC001 unknown queue; PC003 (or 2D000) called in a transaction; 42501 the caller lacks the right work.
create or replace procedure pgcombine.reclaim(queue text default null)
language plpgsql
as $$
declare
    _queue text;
    _seen txid_snapshot;
    _horizon bigint;
    _segment record;
begin
    call pgcombine_internal.begin_alone('reclaim');
    perform pgcombine_internal.require_right(reclaim.queue, 'work');
    if not pgcombine_internal.own_cluster() then
        return; -- the stored transaction ids come from another database
    end if;
    foreach _queue in array array(
        select q.queue from pgcombine.queue q
        where reclaim.queue is null or q.queue = reclaim.queue
        order by q.queue)
    loop
        continue when not exists (select from pgcombine.queue q where q.queue = _queue); -- dropped since the loop began
        perform pgcombine_internal.trim_tokens(_queue);
        commit;
        set local transaction isolation level read committed;
        _seen := txid_current_snapshot();
        _horizon := coalesce(pgcombine_internal.oldest_snapshot(), pgcombine_internal.oldest_snapshot_for());
        for _segment in select * from pgcombine_internal.consumed_segments(_queue, _seen, _horizon) loop
            if _horizon is not null then
                perform pgcombine_internal.reclaim_segment(_queue, _segment.relation, _segment.partition,
                    _segment.last, _seen, _horizon);
            else
                while pgcombine_internal.delete_consumed(_queue, _segment.relation, _segment.partition) > 50000 loop
                    commit;
                    set local transaction isolation level read committed;
                end loop;
                perform pg_stat_force_next_flush(); -- so that the worker's query dead_segments sees the deletions
            end if;
            commit;
            set local transaction isolation level read committed;
        end loop;
    end loop;
end
$$;
