-- The rows that the core registers in the tables right_privilege, component_table and hook. This file first deletes the
-- rows of all components, except component_table's rows of single queues. The component.sql of each other component
-- then inserts its own rows, so the rows of a removed component disappear.
delete from pgcombine.right_privilege;
delete from pgcombine.component_table where queue is null;
delete from pgcombine.hook;

insert into pgcombine.right_privilege ("right", object, privileges) values
    ('enqueue', '_updates', 'insert (*)'),
    ('read', '_values', 'select'),
    ('read', '_current', 'select'),
    ('work', 'pgcombine.pass', 'select, insert, update, delete, truncate'); -- and all tables (see right_privileges)
insert into pgcombine.right_privilege ("right", object, privileges)
select 'monitor', 'pgcombine.' || v, 'select'
from unnest('{pass_minute,status,queue_stat,bucket_stat,minute_stat,pass_recent,segment_stat,table_size}'::text[]) v;
insert into pgcombine.component_table (name)
values ('pass'), ('pass_minute'), ('tick'), ('sample'), ('token'), ('failure'), ('quarantined_key');
