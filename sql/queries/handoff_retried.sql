-- The updates that a server has refused and that this coordinator still has, in quarantine or in hints that retry them.
-- Parameter: the server.
select token, number from pgcombine.handoff_quarantine where destination = %(server)s
union
select origin, number from pgcombine.handoff_hint where destination = %(server)s and number is not null
