-- Phrases of the search table with the given words in a row, the most frequent first. Parameters: words (tokens, joined
-- by one space), top.
select phrase, docs, total
from phrasecount.search
where not pgcombine_deleted and ' ' || phrase || ' ' like '%% ' || %(words)s || ' %%'
order by total desc, docs desc, phrase
limit %(top)s
