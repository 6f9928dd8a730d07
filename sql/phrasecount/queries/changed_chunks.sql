-- The chunks of documents that get their first reference (sign 1) or lose their last one (sign -1), in the order of the
-- documents. Parameters: load, positions.
select d.position, d.sign, c.tokens
from phrasecount.delta d
join phrasecount.document_chunk c on c.document = d.document
where d.load = %(load)s and d.position = any (%(positions)s)
order by d.position
