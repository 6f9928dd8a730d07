-- The owner of an export (empty: none), its epoch, the highest sequence number that an entry can have so far, and
-- whether a full state isn't swept yet (see export_sweep). The sequence number is null if the role may not read the
-- sequence. Parameter: the name of the export.
select coalesce(owner, ''), epoch,
       epoch * 1099511627776
           + case when has_sequence_privilege('pgcombine.change_sequence', 'select')
                  then coalesce(pg_sequence_last_value('pgcombine.change_sequence'), 0) end,
       sweep
from pgcombine.export
where export = %s
