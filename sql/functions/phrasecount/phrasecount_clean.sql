-- phrasecount.clean()
-- Empties the work tables, and removes documents that a run wrote which never committed; to be called by who holds the
-- run's lock, in a transaction of its own. A dead run's last writer may keep a table locked: give a lock_timeout,
-- left-overs do no harm.
-- Tables written: phrasecount.listed, scanned, move, delta, kept, document_chunk.
create or replace function phrasecount.clean()
returns void
language sql
as $$
    truncate phrasecount.listed, phrasecount.scanned, phrasecount.move, phrasecount.delta;
    with dead as (delete from phrasecount.kept returning document)
    delete from phrasecount.document_chunk c using dead
    where c.document = dead.document
      and not exists (select from phrasecount.document d where d.hash = dead.document);
$$;
