-- pgcombine_internal.wake() trigger, before or after insert, statement level, on <queue>_updates; argument: the queue
-- While a worker holds the idle lock (see below), the trigger notifies the channel pgcombine.<queue>. Without the
-- argument it never notifies. Components use the trigger on their own tables, too.
-- The trigger refuses inserts into a copied database (see own_cluster), whose stored transaction ids another database
-- assigned. If the database isn't a copy, the session stores the file number of the table cluster_identity in a
-- variable, and skips this check while the number stays the same: the identity can't change within the file (see
-- refuse_cluster_identity). A role that sets the variable itself can insert into a copied database, and may lose its
-- updates there when post_restore truncates the log.
-- Commits that notify wait for each other, in the whole server, so a writer notifies only while the idle lock is held.
-- The idle lock is an advisory lock on the trigger's table. Writers share it until their transaction ends. A worker
-- holds it alone: the worker takes the lock before it polls a last time and listens, and releases the lock when this
-- table has work. So no writer commits unnoticed after that last poll.
-- Errors: PC012 the database is a copy in which post_restore has not run yet.
create or replace function pgcombine_internal.wake()
returns trigger
language plpgsql
as $$
begin
    -- One expression decides, since the trigger runs for every enqueue and each statement takes time.
    if current_setting('pgcombine.cluster_identity', true) = pg_relation_filenode('pgcombine.cluster_identity')::text
       and (tg_nargs = 0 or pg_try_advisory_xact_lock_shared(hashtext('pgcombine.idle'), tg_relid::integer))
    then
        return null;
    end if;
    perform pgcombine_internal.refuse_copied();
    perform set_config('pgcombine.cluster_identity', pg_relation_filenode('pgcombine.cluster_identity')::text, false);
    if tg_nargs > 0 and not pg_try_advisory_xact_lock_shared(hashtext('pgcombine.idle'), tg_relid::integer) then
        perform pg_notify('pgcombine.' || tg_argv[0], '');
    end if;
    return null;
end
$$;
