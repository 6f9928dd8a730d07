-- pgcombine_internal.wake() trigger, before or after insert, statement level, on <queue>_updates; argument: the channel
-- The channel is the queue's name (see channel); none: the queue doesn't notify. Components have the trigger on tables
-- of theirs, with channels of theirs. The trigger's table is the gate (see asleep).
-- Refuses inserts into a copied database (see own_lineage): new ids beside those of the other database would mean
-- nothing. The session remembers that the database isn't one, by the number of the file that holds the lineage. In that
-- file it stays so (see refuse_lineage). Whoever sets the variable by hand loses updates of its own at most, since
-- adopt removes each row that a copied database holds.
-- Notifies a sleeping worker. The trigger can't know the buckets of the rows, since a transition table would halve the
-- rate of COPY. So it notifies on the queue's channel, which stands for all its buckets.
-- Errors: PC012 the database is a copy that isn't adopted yet.
create or replace function pgcombine_internal.wake()
returns trigger
language plpgsql
as $$
begin
    -- It runs for every enqueue. So one expression decides, and asleep is written out here.
    if current_setting('pgcombine.lineage', true) = pg_relation_filenode('pgcombine.lineage')::text
       and (tg_nargs = 0 or pg_try_advisory_xact_lock_shared(hashtext('pgcombine.gate'), tg_relid::integer))
    then
        return null;
    end if;
    perform pgcombine_internal.refuse_copied();
    perform set_config('pgcombine.lineage', pg_relation_filenode('pgcombine.lineage')::text, false);
    if tg_nargs > 0 and not pg_try_advisory_xact_lock_shared(hashtext('pgcombine.gate'), tg_relid::integer)
       and current_setting('pgcombine.quiet', true) is distinct from 'on'
    then
        perform pg_notify(pgcombine_internal.channel(tg_argv[0]), '');
    end if;
    return null;
end
$$;
