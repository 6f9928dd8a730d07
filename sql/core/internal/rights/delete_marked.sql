-- pgcombine_internal.delete_marked()
-- Deletes rows that roles have marked because they may update them but not delete them: failures without an attempt,
-- quarantined keys with a negative number of updates, quarantined export entries since -infinity.
-- Runs with its owner's rights. Every role may call it, since marking a row took the right.
-- Tables written: pgcombine.failure, quarantined_key, export_quarantine.
create or replace function pgcombine_internal.delete_marked()
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select pgcombine_internal.caller();
    -- a row that another transaction has locked stays for a later call, so that no call waits
    delete from pgcombine.failure f
    where f.ctid = any (array(select m.ctid from pgcombine.failure m where m.attempts = 0 for update skip locked));
    delete from pgcombine.quarantined_key k
    where k.ctid = any (array(select m.ctid from pgcombine.quarantined_key m where m.updates < 0 for update skip locked));
    delete from pgcombine.export_quarantine q
    where q.ctid = any (array(select m.ctid from pgcombine.export_quarantine m where m.since = '-infinity' for update skip locked))
$$;
