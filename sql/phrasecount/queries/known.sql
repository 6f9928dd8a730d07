-- The paths of stored files with their content hashes (hex). Parameters: directory (real path), paths.
select u.path, encode(u.content_hash, 'hex')
from phrasecount.uri u
join phrasecount.directory d on d.id = u.directory
where d.path = %(directory)s and u.path = any (%(paths)s)
