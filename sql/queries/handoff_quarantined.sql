-- The quarantined updates, which other servers refused, as JSON (content).
-- Parameters: a server, null: all; the token of a write, null: all; the maximum number of updates.
select destination, token, number, queue, since, sqlstate, error,
       pgcombine_internal.handoff_content(queue, payload) as content
from pgcombine.handoff_quarantine
where destination = coalesce(%s, destination) and token = coalesce(%s, token)
order by destination, token, number
limit %s
