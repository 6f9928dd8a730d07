-- phrasecount.apply(load, directory)
-- Applies the run's changes (phrasecount.delta, phrasecount.move) to the stored documents. The run calls the function
-- in the transaction that holds the run's lock and enqueues the run's updates. So documents and updates commit together
-- or not at all.
--   load       the run, for which compare was called before
--   directory  real path of the directory that the run counts
-- Tables written: phrasecount.directory, document, document_chunk, kept, uri.
create or replace function phrasecount.apply(load uuid, directory text)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
    _directory integer;
begin
    insert into phrasecount.directory (path) values (apply.directory) on conflict (path) do nothing;
    select d.id into strict _directory from phrasecount.directory d where d.path = apply.directory;

    insert into phrasecount.document (hash, refs)
    select d.document, d.refs from phrasecount.delta d where d.load = apply.load and d.sign = 1;
    delete from phrasecount.kept using phrasecount.delta d
    where d.load = apply.load and d.sign = 1 and kept.document = d.document;
    update phrasecount.document set refs = document.refs + d.refs
    from phrasecount.delta d
    where d.load = apply.load and d.sign = 0 and document.hash = d.document;

    delete from phrasecount.uri using phrasecount.move m
    where m.load = apply.load and m.document is null and uri.directory = _directory and uri.path = m.path;
    insert into phrasecount.uri (directory, path, content_hash, document)
    select _directory, m.path, m.content_hash, m.document
    from phrasecount.move m where m.load = apply.load and m.document is not null
    on conflict (directory, path) do update set content_hash = excluded.content_hash, document = excluded.document;

    delete from phrasecount.document using phrasecount.delta d
    where d.load = apply.load and d.sign = -1 and document.hash = d.document;
    delete from phrasecount.document_chunk using phrasecount.delta d
    where d.load = apply.load and d.sign = -1 and document_chunk.document = d.document;
end
$$;
