-- The number of stored files that the run has found but doesn't count, since they are beyond --limit; and the first of
-- their paths. Parameters: directory (real path), load.
select count(*), min(u.path)
from phrasecount.uri u
join phrasecount.directory d on d.id = u.directory
join phrasecount.listed l on l.path = u.path
where d.path = %(directory)s and l.load = %(load)s and not l.counted
