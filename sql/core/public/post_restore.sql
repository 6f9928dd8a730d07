-- pgcombine.post_restore() → boolean
-- Makes the queues of a database that was restored from a dump usable. Returns false if there is nothing to do.
-- The stored transaction ids mean nothing in the restored database (see own_cluster). So the function appends pending
-- updates again, which gives them ids of this database, and removes all other updates. It also writes new marks (see
-- mark_all). Until the function has run, enqueues and passes raise PC012. Workers call the function when they start and
-- while they run, and upgrades call it. It does everything in one transaction. If several sessions call it, the others
-- wait for the first.
-- Runs with its owner's rights, for roles that may run passes.
-- Tables written: <queue>_updates; pgcombine.pass, tick, cluster_identity; those of components.
-- Errors: PC012 the restore isn't finished; PC003 the isolation level isn't read committed; 42501 the caller lacks the
-- right work.
create or replace function pgcombine.post_restore()
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue text;
    _query text;
begin
    perform pgcombine_internal.require_right(null, 'work', pgcombine_internal.caller());
    if pgcombine_internal.own_cluster() then
        return false;
    end if;
    -- an older snapshot wouldn't see that another caller has finished the work
    perform pgcombine_internal.require(current_setting('transaction_isolation') = 'read committed',
        'PC003', 'post_restore needs isolation level read committed',
        'begin transaction isolation level read committed');
    lock table pgcombine.cluster_identity in share row exclusive mode;
    if pgcombine_internal.own_cluster() then
        return false;
    end if;
    perform pgcombine_internal.require( -- a restore creates triggers at its end
        exists (select from pg_trigger t where t.tgrelid = to_regclass(n.updates)
            and t.tgname = 'pgcombine_wake'), 'PC012',
        format('the restore of database "%s" isn''t finished: %s has no trigger yet', current_database(), n.updates),
        'try again after the restore; if no restore is running, run pgcombine db upgrade')
    from (select format('pgcombine.%I', q.queue || '_updates') as updates from pgcombine.queue q) n;
    delete from pgcombine.cluster_identity;
    -- The table gets two rows, written by a transaction and its subtransaction. A restore writes both in one
    -- transaction. That transaction's id may by chance be the id in one row, but not in both.
    insert into pgcombine.cluster_identity values (1, '0');
    update pgcombine.cluster_identity set id = xmin;
    begin
        insert into pgcombine.cluster_identity values (2, '0');
        update pgcombine.cluster_identity set id = xmin where place = 2;
    exception when division_by_zero then null; -- the exception clause makes the block a subtransaction
    end;
    delete from pgcombine.tick;
    -- the deleted rows give the times of another server's ids; pending updates count as enqueued now
    insert into pgcombine.tick (at, next_id) values (clock_timestamp(), txid_current());

    for _queue in select q.queue from pgcombine.queue q order by q.queue loop
        perform pgcombine_internal.post_restore_queue(_queue);
        for _query in select h.query from pgcombine.hook h where h.event = 'post_restore' loop
            execute _query using _queue;
        end loop;
    end loop;
    return true;
end
$$;
