-- The next writes that this server retains: each with its coordinator and the other servers that hold its keys,
-- whether or not they have the write. Writes of the last second are left out, since their deliveries are probably in
-- progress, and so are writes of queues whose topology this server doesn't know.
-- Parameters: the token after which the writes begin; the maximum number of writes.
select k.token, k.queue, k.coordinator,
       array(select unnest(q.servers) intersect select unnest(coalesce(k.servers, q.servers)) except select s.name)
from pgcombine.handoff_server s, pgcombine.handoff_retained k
join pgcombine.handoff_queue q on q.queue = k.queue and q.servers is not null
where k.token > %s and k.since < now() - interval '1 second'
order by k.token
limit %s
