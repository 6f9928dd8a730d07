-- This server's name (null: it has none yet), and the names and addresses of the servers that are registered here
-- (nulls if there is none).
select s.name, r.name, r.dsn
from (values (true)) v
left join pgcombine.handoff_server s on true
left join pgcombine.handoff_replica r on true
order by r.name
