-- What the source and the data of an export's CloudEvents are made of: the server's identifier, the database, the queue
-- and its key columns. No row if the export has another format. Parameter: the export's name.
select c.system_identifier, current_database(), e.queue,
       array(select k.name from pgcombine.queue_column k where k.queue = e.queue and k.role = 'key' order by k.position)
from pgcombine.export e
cross join pg_control_system() c
where e.export = %s and e.format = 'cloudevents'
