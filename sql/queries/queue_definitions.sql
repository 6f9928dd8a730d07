select q.queue,
       array_agg(pgcombine_internal.column_definition(c) order by c.position) filter (where c.role = 'key') as key,
       array_agg(pgcombine_internal.column_definition(c) order by c.position) filter (where c.role = 'value') as value,
       q.delete_when, q.buckets, q.buckets / q.partitions as buckets_per_partition, q.tablespaces, q.notify,
       q.pass_limit,
       q.max_backlog, q.quarantine_after, q.expire_when, q.expire_silently, q.expire_every::text,
       q.token_retention::text, q.paused, q.created_at
from pgcombine.queue q join pgcombine.queue_column c using (queue)
group by q.queue
order by q.queue
