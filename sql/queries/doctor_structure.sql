-- The parts of verify that look at no rows and write nothing. Parameter, given four times: the queue.
-- Where a table is missing, columns, triggers and the statement of passes can't be compared.
with missing as materialized (select r.problem from pgcombine_internal.verify_relations(%s) r (problem))
select m.problem from missing m
union all
select c.problem
from pgcombine.queue q
cross join unnest(array['_updates', '_values']) e
cross join lateral pgcombine_internal.verify_columns(q.queue, to_regclass(format('pgcombine.%%I', q.queue || e))) c (problem)
where q.queue = %s and not exists (select from missing)
union all
select t.problem from (select %s::text as queue where not exists (select from missing)) q, pgcombine_internal.verify_triggers(q.queue) t (problem)
union all
select 'the generated statement of passes is not up to date'
from pgcombine.queue q
where q.queue = %s and not exists (select from missing) and q.pass is distinct from pgcombine_internal.pass_parts(q.queue)
