-- The quarantined entries of exports, latest first. Parameter: the maximum number of entries.
select export, seq, left(error, 2000) as error, since from pgcombine.export_entry
where error is not null order by since desc limit %s
