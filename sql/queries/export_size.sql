-- The maximum number of entries in a delivery of an export, and the number of the key columns of the export's queue.
-- Parameter: the name of the export.
select e.batch, (select count(*) from pgcombine.queue_column c where c.queue = e.queue and c.role = 'key')
from pgcombine_internal.require_export(%s) e
