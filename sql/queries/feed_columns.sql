-- Two arrays: the columns of a feed's changes, and the columns of its snapshots. Parameter: the name of the feed.
select array['_bucket', '_sequence', '_change_type', '_commit_version', '_commit_timestamp']
           || array_agg(c.name order by c.position) filter (where c.role = 'key')
           || array_agg('old_' || c.name order by c.position) filter (where c.role = 'value')
           || array_agg('new_' || c.name order by c.position) filter (where c.role = 'value'),
       array_agg(c.name order by c.position)
from pgcombine.queue_column c
where c.queue = (pgcombine_internal.require_feed(%s)).queue
