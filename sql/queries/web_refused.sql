-- The entries of exports that their destinations have refused, latest first. Parameter: limit.
select export, seq, left(error, 2000) as error, since from pgcombine.export_quarantine order by since desc limit %s
