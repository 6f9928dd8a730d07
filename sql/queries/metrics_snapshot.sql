select coalesce((select age_seconds from pgcombine.oldest_snapshot), 0) as seconds
