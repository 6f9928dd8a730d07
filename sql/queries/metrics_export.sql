select export, queue, pending, lag_seconds from pgcombine.export_stat
