-- Documents (hash in hex) to which other directories refer. Parameter: directory (real path).
select distinct encode(u.document, 'hex')
from phrasecount.uri u
join phrasecount.directory d on d.id = u.directory
where d.path <> %(directory)s
