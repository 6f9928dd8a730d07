select destination, writes, oldest_seconds from pgcombine.hint_stat
