-- Lines of text about problems of this server: it needs repair, it received writes without retaining them because of
-- the quota, it has refused updates.
select format('this server, %s, needs repair: %s', s.name, s.needs_repair)
from pgcombine.handoff_server s where s.needs_repair is not null
union all
select format('until %s this server received writes without retaining them: the quota of %s bytes was reached',
           s.not_retained_at, s.max_retained_bytes)
from pgcombine.handoff_server s where s.not_retained_at is not null
union all
select format('this server, %s, has refused %s updates '
              '(pgcombine replicas repair retries those whose coordinator is lost)', s.name, f.updates)
from pgcombine.handoff_server s, (select count(*) as updates from pgcombine.handoff_refused) f where f.updates > 0
