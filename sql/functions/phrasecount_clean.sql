-- phrasecount.clean()
-- Empties the work tables; to be called by who holds the run's lock, in a transaction of its own. Rows of a
-- dead run's last writer may keep a table locked: give a lock_timeout, left-overs do no harm.
-- Tables written: phrasecount.listed, scanned, move, delta, difference.
create or replace function phrasecount.clean()
returns void
language sql
as $$
    truncate phrasecount.listed, phrasecount.scanned, phrasecount.move, phrasecount.delta, phrasecount.difference
$$;
