-- Which of the given servers need repair, and why. Parameter: servers.
select name, needs_repair from pgcombine.handoff_replica where name = any (%(sources)s) and needs_repair <> ''
union all
select name, needs_repair from pgcombine.handoff_server where name = any (%(sources)s) and needs_repair <> ''
