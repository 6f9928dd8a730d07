select queue, pending, lag_seconds, quarantined_keys from pgcombine.queue_stat
