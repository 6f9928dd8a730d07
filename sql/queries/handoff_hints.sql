-- The hints that wait here for a server, in the order of their tokens, with their updates as JSON (content).
-- Parameters: the server; the maximum number of hints.
select token, queue, updates, pg_column_size(payload) as bytes, since,
       pgcombine_internal.handoff_content(queue, payload) as content
from pgcombine.handoff_hint
where destination = %s
order by token
limit %s
