-- A state of the definitions of all queues; and if it isn't the given one, an array of the queues. Each is an array of
-- name, state, whether the queue is paused, and the table of its idle lock (see wake; null: its column notify is
-- false). The states change with the row of a queue, and for all queues when post_restore has run.
-- Parameter: a state that the query has returned.
select s.state, case when s.state <> %s then (
    select coalesce(jsonb_agg(jsonb_build_array(q.queue, q.xmin::text || ' ' || s.identity, q.paused,
               case when q.notify then to_regclass(format('pgcombine.%%I', q.queue || '_updates'))::oid::bigint end)),
           '[]')
    from pgcombine.queue q) end
from (select i.identity, concat_ws(' ', i.identity,
                 (select md5(string_agg(q.queue || ' ' || q.xmin::text, ' ')) from pgcombine.queue q)) as state
      from (select string_agg(l.xmin::text, ' ' order by l.xmin::text) as identity
            from pgcombine.cluster_identity l) i) s
