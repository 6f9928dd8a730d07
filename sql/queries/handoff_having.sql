-- Those of the given writes whose payload this server has, as retained writes or as hints. Parameter: tokens.
select queue, token from pgcombine.handoff_retained where token = any (%(tokens)s)
union
select queue, token from pgcombine.handoff_hint where token = any (%(tokens)s)
order by token
