-- The other servers, and about how many writes wait here for each (see hint_stat).
select destination, state, writes, updates, oldest, oldest_seconds from pgcombine.hint_stat order by destination
