-- Which of some writes this server has the texts of: it keeps them, or has them as hints. Parameter: tokens.
select queue, token from pgcombine.handoff_retained where token = any (%(tokens)s)
union
select queue, token from pgcombine.handoff_hint where token = any (%(tokens)s)
order by token
