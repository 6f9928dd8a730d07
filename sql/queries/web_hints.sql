-- The other servers, and how many writes wait here for each.
select destination, state, writes, updates, oldest, oldest_seconds from pgcombine.hint_stat order by destination
