-- The rows that the core registers in the tables right_kind, right_privilege, component_table and hook. This file first
-- deletes the rows of all components, except component_table's rows of single queues. The component.sql of each other
-- component then inserts its own rows, so the rows of a removed component disappear.
delete from pgcombine.right_privilege;
delete from pgcombine.right_kind;
delete from pgcombine.component_table where queue is null;
delete from pgcombine.hook;

insert into pgcombine.right_kind ("right", subject, optional, standing, act) values
    ('enqueue', 'queue', false, 'pgcombine.every_queue', 'enqueue to queue'),
    ('read', 'queue', false, 'pgcombine.every_queue', 'read queue'),
    ('load', 'queue', false, 'pgcombine.every_queue', 'load into queue'),
    ('work', 'queue', false, 'pgcombine.every_queue', 'run passes over queue'),
    ('operate', 'queue', false, 'pgcombine.every_queue', 'operate queue'),
    ('monitor', null, true, null, 'monitor queue');
insert into pgcombine.right_privilege ("right", relation, privileges, partitions) values
    ('enqueue', '_updates', '{insert (*)}', false),
    ('load', '_updates', '{insert (*)}', false),
    ('load', '_values', '{insert}', false),
    ('read', '_values', '{select}', false),
    ('read', '_current', '{select}', false),
    ('work', '_updates', '{select,truncate,delete}', true),
    ('work', '_values', '{select,insert,update,delete}', true),
    ('work', '_quarantine', '{select,insert}', false),
    ('work', '_quarantine_keys', '{select,insert}', false),
    ('operate', '_updates', '{insert}', false), -- retry_quarantined inserts updates
    ('operate', '_quarantine', '{select,delete}', false),
    ('operate', '_quarantine_keys', '{select,delete}', false),
    ('monitor', 'pgcombine.every_queue', '{select (monitor)}', false);
insert into pgcombine.component_table (name, marked) values
    ('pass', null), ('pass_minute', null), ('tick', null), ('sample', null), ('token', null),
    ('failure', 'attempts = 0'), ('quarantined_key', 'updates < 0');
