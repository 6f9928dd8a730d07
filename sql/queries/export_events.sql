-- For an export with the format cloudevents: the server's system identifier, the database, the queue and its key
-- columns. The source and the data of its CloudEvents are made of these. No row if the format is another one.
-- Parameter: the name of the export.
select c.system_identifier, current_database(), e.queue,
       array(select k.name from pgcombine.queue_column k where k.queue = e.queue and k.role = 'key' order by k.position)
from pgcombine.export e
cross join pg_control_system() c
where e.export = %s and e.format = 'cloudevents'
