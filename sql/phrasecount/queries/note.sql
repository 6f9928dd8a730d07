-- Stores what a run has found in new and edited files. If several attempts read a file, the last one counts.
-- Parameters: load; and arrays with one element for each file: ns (the file's number in phrasecount.listed),
-- content_hashes and documents (SHA-256 of its content and of its tokens), left_out (number of occurrences of phrases
-- that are too long to be a key), problems and details (why it can't be counted).
insert into phrasecount.scanned (load, n, content_hash, document, left_out, problem, detail)
select %(load)s, f.*
from unnest(%(ns)s::int[], %(content_hashes)b::bytea[], %(documents)b::bytea[], %(left_out)s::bigint[],
    %(problems)s::text[], %(details)s::text[]) f
on conflict (load, n) do update set
    (content_hash, document, left_out, problem, detail)
    = (excluded.content_hash, excluded.document, excluded.left_out, excluded.problem, excluded.detail)
