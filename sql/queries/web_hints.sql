-- The other servers, and the writes that wait here for them.
select destination, state, writes, updates, oldest, oldest_seconds from pgcombine.hint_stat order by destination
