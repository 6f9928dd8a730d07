-- phrasecount.apply(load, directory)
-- Last step of a run, to be called in the transaction that holds its lock: enqueues the run's updates and
-- brings the documents' state to the same point. Both commit together or not at all.
--   load       the run; compare(load, directory) went before, its differences are staged
--   directory  real path
-- Returns one row: updates enqueued; occurrences left out because their phrase is too long for a key.
-- Tables written: pgcombine.phrases_updates, phrasecount.directory, document, document_chunk, uri.
create or replace function phrasecount.apply(load uuid, directory text, out updates bigint, out left_out bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    _directory integer;
begin
    insert into phrasecount.directory (path) values (apply.directory) on conflict (path) do nothing;
    select d.id into strict _directory from phrasecount.directory d where d.path = apply.directory;

    insert into pgcombine.phrases_updates (phrase, docs, total)
    select d.phrase, d.docs, d.total from phrasecount.difference_once d
    where d.load = apply.load and d.phrase is not null;
    get diagnostics updates = row_count;
    select coalesce(sum(d.total), 0) into left_out from phrasecount.difference_once d
    where d.load = apply.load and d.phrase is null;

    insert into phrasecount.document (hash, refs)
    select d.document, d.refs from phrasecount.delta d where d.load = apply.load and d.sign = 1;
    insert into phrasecount.document_chunk (document, seq, tokens)
    select d.document, s.seq, s.tokens
    from phrasecount.delta d
    join phrasecount.scanned_once s on s.load = d.load and s.n = d.n and s.tokens is not null
    where d.load = apply.load and d.sign = 1;
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
end
$$;
