-- Stored files that are still there but lie beyond --limit: how many, and the first.
-- Parameters: directory (real path), load.
select count(*), min(u.path)
from phrasecount.uri u
join phrasecount.directory d on d.id = u.directory
join phrasecount.listed l on l.path = u.path
where d.path = %(directory)s and l.load = %(load)s and not l.counted
