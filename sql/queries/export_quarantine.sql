-- The quarantined entries. Parameter: the name of an export; null: all.
select export, seq, entry, error, since
from pgcombine.export_entry
where export = coalesce(%s, export) and error is not null
order by since, export, seq
