-- The problems of a queue that show in the catalog: those of verify_structure, and an outdated statement of passes. The
-- latter is checked unless one of the former rules out further checks.
-- Parameter, given twice: the queue.
with found as materialized (select s.problem, s.ends from pgcombine_internal.verify_structure(%s) s)
select f.problem from found f
union all
select 'the generated statement of passes is not up to date'
from pgcombine.queue q
where q.queue = %s and not exists (select from found f where f.ends)
  and (q.pass is distinct from pgcombine_internal.pass_parts(q.queue)
       or q.statement is distinct from pgcombine_internal.pass_template(q.queue))
