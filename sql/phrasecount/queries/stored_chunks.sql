-- Chunks of stored documents, ordered by document. Parameter: documents (hashes in hex).
select c.document, 1, c.tokens
from phrasecount.document_chunk c
where c.document = any (select decode(h, 'hex') from unnest(%(documents)s::text[]) h)
order by c.document
