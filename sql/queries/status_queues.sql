-- The queues, with columns of queue_stat.
select queue, paused, pending as backlog, lag_seconds, quarantined_keys, quarantined_updates, updates_per_second_1m,
    keys_per_second_1m,
       changes_per_second_1m, pass_seconds_p50, pass_seconds_p99, last_pass_at, pending_at
from pgcombine.queue_stat
order by queue
