-- phrasecount.note(load, ns, content_hashes, documents, left_out, problems, details)
-- Stores what a run has found in new and edited files; each array has an element a file. If several attempts read a
-- file, the last one counts.
--   ns         its number in phrasecount.listed
--   content_hashes, documents  the SHA-256 of its content and of its tokens
--   left_out   number of phrases too long to be a key
--   problems, details  why the file can't be counted
-- Tables written: phrasecount.scanned.
create or replace function phrasecount.note(load uuid, ns integer[], content_hashes bytea[], documents bytea[],
    left_out bigint[], problems text[], details text[])
returns void
language sql
as $$
    insert into phrasecount.scanned (load, n, content_hash, document, left_out, problem, detail)
    select $1, f.* from unnest(ns, content_hashes, documents, $5, problems, details) f
    on conflict (load, n) do update set
        (content_hash, document, left_out, problem, detail)
        = (excluded.content_hash, excluded.document, excluded.left_out, excluded.problem, excluded.detail)
$$;
