-- Those of the given writes whose payload this server has, retained or in a hint. Parameter: tokens, the tokens of the
-- writes.
select queue, token from pgcombine.handoff_retained where token = any (%(tokens)s)
union
select queue, token from pgcombine.handoff_hint where token = any (%(tokens)s)
order by token
