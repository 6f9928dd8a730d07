-- The updates that servers refused, as JSON.
-- Parameters: a server, or null for all; the token of a write, or null for all; the maximum number of updates.
select destination, token, number, queue, since, sqlstate, error,
       pgcombine_internal.handoff_content(queue, payload) as content
from pgcombine.handoff_quarantine
where destination = coalesce(%s, destination) and token = coalesce(%s, token)
order by destination, token, number
limit %s
