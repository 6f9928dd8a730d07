-- The other servers, with figures from hint_stat.
select destination, state, reason, needs_repair, writes, oldest_seconds from pgcombine.hint_stat order by destination
