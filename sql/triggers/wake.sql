-- pgcombine.wake() trigger, before the statement, on <queue>_updates and <export>_exports; argument: the gate, which is the
-- queue, or 'export ' and the name of the export. None: nobody wants to be notified.
-- Refuses statements in a copy of the database (see own_lineage): beside ids of the other database new ones would mean
-- nothing.
-- Notifies a sleeping worker that updates, or entries, came. It can't know their buckets (a transition table would halve the
-- rate of COPY), so it notifies on the queue's channel, which stands for all its buckets.
-- Errors: PC012 the database is a copy that was not adopted yet.
create or replace function pgcombine.wake()
returns trigger
language plpgsql
as $$
begin
    -- as own_lineage and asleep, written out: this runs for every enqueue
    if (select bool_and(l.xmin = l.id) from pgcombine.lineage l) is not true then
        perform pgcombine.refuse_copied();
    end if;
    if tg_nargs > 0 and not pg_try_advisory_xact_lock_shared(hashtext('pgcombine.gate'), hashtext(tg_argv[0]))
       and current_setting('pgcombine.quiet', true) is distinct from 'on'
    then
        perform pg_notify(pgcombine.channel(tg_argv[0]), '');
    end if;
    return null;
end
$$;
