-- Who holds the oldest snapshot, if anybody.
select holder, pid, name, role, state, since, age_seconds from pgcombine.oldest_snapshot
