-- The properties of a queue's columns that Spark's writers need, in order. Parameter: queue.
select c.name, c.role, c.type,
       format_type(case when b.typcategory = 'A' and b.typelem <> 0 then pgcombine_internal.base_type(b.typelem) else b.oid end, null) as base,
       b.typcategory = 'A' and b.typelem <> 0 as is_array
from pgcombine.queue_column c
join pg_type b on b.oid = pgcombine_internal.base_type(c.type::regtype)
where c.queue = %(queue)s
order by c.position
