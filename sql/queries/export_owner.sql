-- The owner of an export, its epoch, the highest sequence that an entry can have so far (null: the caller lacks the
-- right to read the sequence), and whether keys that the full state lacks must still be marked as deleted.
-- Parameter: the export's name.
select coalesce(owner, ''), epoch,
       epoch * 1099511627776
           + case when has_sequence_privilege('pgcombine.export_sequence', 'select')
                  then coalesce(pg_sequence_last_value('pgcombine.export_sequence'), 0) end,
       sweep is not null
from pgcombine.export
where export = %s
