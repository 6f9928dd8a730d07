-- The other servers, and what waits here for them.
select destination, state, writes, updates, oldest, oldest_seconds from pgcombine.hint_stat order by destination
