-- phrasecount.scanned_once
-- The rows of phrasecount.scanned that count: of each part of a load those of its first attempt.
create or replace view phrasecount.scanned_once as
select s.load, s.n, s.seq, s.tokens, s.content_hash, s.document, s.problem, s.detail
from phrasecount.scanned s
join (select load, part, min(attempt) as attempt from phrasecount.scanned group by load, part) first
    using (load, part, attempt);
