-- Chunks of stored documents. Parameter: documents (hashes in hex).
select encode(c.document, 'hex'), c.tokens
from phrasecount.document_chunk c
where c.document = any (select decode(h, 'hex') from unnest(%(documents)s::text[]) h)
