-- pgcombine.wake() trigger, statement level, on <queue>_updates and <export>_exports; argument: the gate, which is the
-- queue, or 'export ' and the name of the export.
-- Notifies a sleeping worker that updates, or entries, came. It can't know their buckets (a transition table would halve the
-- rate of COPY), so it notifies on the queue's channel, which stands for all its buckets.
create or replace function pgcombine.wake()
returns trigger
language plpgsql
as $$
begin
    -- as asleep, written out: this runs for every enqueue
    if not pg_try_advisory_xact_lock_shared(hashtext('pgcombine.gate'), hashtext(tg_argv[0]))
       and current_setting('pgcombine.quiet', true) is distinct from 'on'
    then
        perform pg_notify(pgcombine.channel(tg_argv[0]), '');
    end if;
    return null;
end
$$;
