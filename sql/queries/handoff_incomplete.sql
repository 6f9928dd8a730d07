-- Those of the given servers that need repair, as far as this server knows, with the reasons. Parameter: sources, the
-- names of the servers.
select name, needs_repair from pgcombine.handoff_replica where name = any (%(sources)s) and needs_repair <> ''
union all
select name, needs_repair from pgcombine.handoff_server where name = any (%(sources)s) and needs_repair <> ''
