-- pgcombine_internal.wake() trigger, statement level, before insert on <queue>_updates and after insert on <export>_exports; argument: the gate
-- The gate is the queue, or 'export ' followed by the name of the export; none: the queue doesn't notify.
-- Refuses inserts into a copied database (see own_lineage): new ids beside those of the other database would mean
-- nothing.
-- Notifies a sleeping worker. The trigger can't know the buckets of the rows, since a transition table would halve the
-- rate of COPY. So it notifies on the queue's channel, which stands for all its buckets.
-- Errors: PC012 the database is a copy that isn't adopted yet.
create or replace function pgcombine_internal.wake()
returns trigger
language plpgsql
as $$
begin
    -- own_lineage and asleep are written out here, since this runs for every enqueue
    if (select bool_and(l.xmin = l.id) from pgcombine.lineage l) is not true then
        perform pgcombine_internal.refuse_copied();
    end if;
    if tg_nargs > 0 and not pg_try_advisory_xact_lock_shared(hashtext('pgcombine.gate'), hashtext(tg_argv[0]))
       and current_setting('pgcombine.quiet', true) is distinct from 'on'
    then
        perform pg_notify(pgcombine_internal.channel(tg_argv[0]), '');
    end if;
    return null;
end
$$;
