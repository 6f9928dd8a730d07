-- phrasecount.note(load, ns, content_hashes, documents, left_out, problems, details)
-- What a run found in new and edited files, an element of each array a file: its number in phrasecount.listed; the
-- SHA-256 of its content and of its tokens, and how many phrases are too long to be a key; or why it can't be counted.
-- Of several attempts at a file the last one counts.
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
