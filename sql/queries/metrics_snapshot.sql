-- NaN: the snapshot is a replication slot's, which has no time
select coalesce((select coalesce(age_seconds, 'NaN') from pgcombine.oldest_snapshot), 0) as seconds
