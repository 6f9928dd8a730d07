-- pgcombine.delete_marked()
-- Deletes what roles have marked for it who may change these rows, but not delete from the tables:
-- failures without an attempt, quarantined keys with a negative number of updates, entries in quarantine since -infinity.
-- Runs with its owner's rights. Nobody needs a right to call it: who made the mark needed one.
-- Tables written: pgcombine.failure, quarantined_key, export_quarantine.
create or replace function pgcombine.delete_marked()
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from pgcombine.failure f where f.attempts = 0;
    delete from pgcombine.quarantined_key k where k.updates < 0;
    delete from pgcombine.export_quarantine q where q.since = '-infinity'
$$;
