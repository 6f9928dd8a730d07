-- The quarantined entries, which their destinations refused. Parameter: the name of an export; null: all.
select export, seq, entry, error, since
from pgcombine.export_quarantine
where export = coalesce(%s, export)
order by since, export, seq
