-- Refused updates of a server that their homes have, or try again. Parameter: server.
select token, number from pgcombine.handoff_quarantine where destination = %(server)s
union
select origin, number from pgcombine.handoff_hint where destination = %(server)s and number is not null
