-- The paths of stored files with their content hashes. Parameter: directory (real path).
select u.path, u.content_hash
from phrasecount.uri u
join phrasecount.directory d on d.id = u.directory
where d.path = %(directory)s
