-- The epoch of an export whose full state is delivered, while its sweep is still to be done: the exporter marks the
-- keys as deleted that the destination has only from earlier epochs. The sweep waits for the export's own entries,
-- since it would delete their keys. No row: there is nothing to do. Parameter: the name of the export.
select e.epoch
from pgcombine.export e
where e.export = %s and e.sweep
  and not exists (select from pgcombine.export_bucket x where x.export = e.export and x.full_after is not null)
  and not exists (select from pgcombine.export_entry q where q.export = e.export)
