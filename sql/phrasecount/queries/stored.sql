-- Numbers of the listed files that have a stored document. Parameters: directory (real path), load.
select l.n
from phrasecount.uri u
join phrasecount.directory d on d.id = u.directory
join phrasecount.listed l on l.path = u.path
where d.path = %(directory)s and l.load = %(load)s and l.counted
