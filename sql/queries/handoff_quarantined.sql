-- The updates that a server refused, as JSON. Parameters: server, their largest number.
select token, number, queue, since, sqlstate, error, pgcombine_internal.handoff_content(queue, payload) as content
from pgcombine.handoff_quarantine
where destination = %s
order by token, number
limit %s
