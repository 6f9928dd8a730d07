-- pgcombine_internal.take_idle_lock(relation) → 'taken' | 'writers' | 'other'
-- Tries to take the idle lock of a table for this session, which is about to listen (see wake). The call doesn't wait.
--   taken    from now on enqueues notify. The caller polls once more, and sleeps until a notification. It keeps the
--            lock until the table has work
--   writers  transactions that have enqueued are in progress. Their commits won't notify, so the session sleeps only
--            for a short time and polls again. Or another session is about to take the lock
--   other    another session holds the lock, so enqueues notify
-- The function uses session locks, which don't work through a pooler in transaction mode.
create or replace function pgcombine_internal.take_idle_lock(relation oid)
returns text
language plpgsql
as $$
begin
    if not pg_try_advisory_lock(hashtext('pgcombine.listener'), relation::integer) then
        if not pg_try_advisory_lock_shared(hashtext('pgcombine.idle'), relation::integer) then
            return 'other';
        end if;
        perform pg_advisory_unlock_shared(hashtext('pgcombine.idle'), relation::integer);
        return 'writers';
    end if;
    if not pg_try_advisory_lock(hashtext('pgcombine.idle'), relation::integer) then
        perform pg_advisory_unlock(hashtext('pgcombine.listener'), relation::integer);
        return 'writers';
    end if;
    return 'taken';
end
$$;
