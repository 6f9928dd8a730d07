-- phrasecount.clean()
-- Empties the work tables and deletes the chunks of documents of runs that never committed. Call the function in a
-- separate transaction while holding the lock of a run. The last writer of a dead run may still lock a table, so set a
-- lock_timeout. If the call fails, go on: the rows of a dead run do no harm.
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
