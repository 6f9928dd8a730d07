-- Chunks of the documents that become live or die, for one slice. Parameters: load, low, high (positions).
select d.position, d.sign, s.tokens
from phrasecount.delta d
join phrasecount.scanned_once s on s.load = d.load and s.n = d.n and s.tokens is not null
where d.load = %(load)s and d.position between %(low)s and %(high)s and d.sign = 1
union all
select d.position, d.sign, c.tokens
from phrasecount.delta d
join phrasecount.document_chunk c on c.document = d.document
where d.load = %(load)s and d.position between %(low)s and %(high)s and d.sign = -1
