-- Files that a run listed but couldn't count, ordered by kind of problem and path. Parameter: load, the id of the run.
select s.problem, coalesce(s.detail, ''), l.path
from phrasecount.scanned s
join phrasecount.listed l on l.load = s.load and l.n = s.n
where s.load = %(load)s and s.problem is not null
order by s.problem, l.path
