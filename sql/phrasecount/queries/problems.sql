-- Files that a run couldn't count, ordered by kind of problem and path. Parameter: load.
select s.problem, coalesce(s.detail, ''), l.path
from phrasecount.scanned s
join phrasecount.listed l on l.load = s.load and l.n = s.n
where s.load = %(load)s and s.problem is not null
order by s.problem, l.path
