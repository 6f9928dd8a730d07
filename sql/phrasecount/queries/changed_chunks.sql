-- The chunks of documents that get their first reference (sign 1) or lose their last one (sign -1), in a range of
-- positions, ordered by document. Parameters: load, low, high (positions).
select d.position, d.sign, c.tokens
from phrasecount.delta d
join phrasecount.document_chunk c on c.document = d.document
where d.load = %(load)s and d.position between %(low)s and %(high)s and d.sign <> 0
order by d.position
