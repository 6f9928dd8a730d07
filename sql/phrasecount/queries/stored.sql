-- The numbers (listed.n) of the files to count that have a stored document; files beyond --limit are left out.
-- Parameters: directory (real path), load.
select l.n
from phrasecount.uri u
join phrasecount.directory d on d.id = u.directory
join phrasecount.listed l on l.path = u.path
where d.path = %(directory)s and l.load = %(load)s and l.counted
