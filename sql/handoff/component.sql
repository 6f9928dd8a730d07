-- The rows that the component handoff registers with the core (see sql/core/component.sql).
insert into pgcombine.right_privilege ("right", object, privileges) values
    ('handoff', '_updates', 'insert (*), references (*)'), -- see has_right
    ('handoff', 'pgcombine.handoff_server', 'select'),
    ('handoff', 'pgcombine.handoff_queue', 'select'),
    ('handoff', 'pgcombine.handoff_replica', 'select (name, id, epoch, needs_repair)'),
    ('handoff', 'pgcombine.handoff_partial', 'select (slots)'),
    ('monitor', 'pgcombine.handoff', 'select'),
    ('monitor', 'pgcombine.hint', 'select'),
    ('monitor', 'pgcombine.hint_stat', 'select');
insert into pgcombine.component_table (name)
values ('handoff_hint'), ('handoff_retained'), ('handoff_delivery'), ('handoff_quarantine'), ('handoff_refused');
insert into pgcombine.hook (event, query) values ('closed', 'select pgcombine_internal.handoff_drop_queue($1)');
