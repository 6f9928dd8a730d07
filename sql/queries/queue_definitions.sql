select q.queue,
       array_agg(format('%I %s', c.name, c.type) order by c.position) filter (where c.role = 'key') as key,
       array_agg(format('%I %s %s', c.name, c.type, c.combiner) order by c.position) filter (where c.role = 'value') as value,
       q.delete_when, q.buckets, q.notify, q.paused, q.created_at
from pgcombine.queue q join pgcombine.queue_column c using (queue)
group by q.queue
order by q.queue
