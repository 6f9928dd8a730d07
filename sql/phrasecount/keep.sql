-- phrasecount.keep(documents, owners, seqs, tokens)
-- Stores the chunks of documents that aren't stored yet. A document is identified by its content. So a run can store
-- chunks before it commits, and several attempts can store the same chunks: those of the first attempt stay. The table
-- phrasecount.kept lists the documents of runs that haven't committed. The function clean deletes their chunks.
--   documents  hashes, each once and in order, so that two writers can't deadlock
--   owners     for each chunk the position of its document, from 1
--   seqs, tokens  for each chunk its number and its tokens
-- Tables written: phrasecount.kept, document_chunk.
create or replace function phrasecount.keep(documents bytea[], owners integer[], seqs integer[], tokens text[])
returns void
language plpgsql
as $$
declare
    _new bytea[];
begin
    with new as (
        insert into phrasecount.kept as k (document)
        select d.hash from unnest(keep.documents) with ordinality d (hash, position)
        where not exists (select from phrasecount.document stored where stored.hash = d.hash)
        order by d.position
        on conflict do nothing
        returning k.document)
    select array_agg(new.document) into _new from new;
    -- deletes chunks of a document that somebody has deleted manually without its chunks
    delete from phrasecount.document_chunk c where c.document = any (_new);
    insert into phrasecount.document_chunk (document, seq, tokens)
    select n.document, c.seq, c.tokens
    from unnest(keep.owners, keep.seqs, keep.tokens) c (owner, seq, tokens)
    join unnest(_new) n (document) on n.document = keep.documents[c.owner];
end
$$;
