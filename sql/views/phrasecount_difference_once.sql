-- phrasecount.difference_once
-- The rows of phrasecount.difference that count: of each part of a load those of its first attempt.
create or replace view phrasecount.difference_once as
select d.load, d.phrase, d.docs, d.total
from phrasecount.difference d
join (select load, part, min(attempt) as attempt from phrasecount.difference group by load, part) first
    using (load, part, attempt);
