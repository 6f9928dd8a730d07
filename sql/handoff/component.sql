-- The rows that the component handoff registers with the core (see sql/core/component.sql).
insert into pgcombine.right_kind ("right", subject, optional, standing, act, proof) values
    ('handoff', 'queue', true, 'pgcombine.every_replicated', 'replicate writes to queue', null),
    ('replay', null, true, null, 'replay hints', 'pgcombine.handoff_hint');
insert into pgcombine.right_privilege ("right", relation, privileges, partitions)
select p."right", r, p.privileges, false
from (values
    ('handoff', '{_updates}'::text[], '{insert (*)}'::text[]),
    ('handoff', '{pgcombine.handoff_server,pgcombine.handoff_queue}', '{select}'),
    ('handoff', '{pgcombine.handoff_replica}', '{select (name),select (id),select (epoch),select (needs_repair)}'),
    ('handoff', '{pgcombine.handoff_partial}', '{select (slots)}'),
    ('monitor', '{pgcombine.handoff,pgcombine.hint}', '{select}'),
    ('replay',
     '{pgcombine.handoff_server,pgcombine.handoff_queue,pgcombine.handoff,pgcombine.hint,pgcombine.destination}',
     '{select}'),
    ('replay', '{pgcombine.handoff_replica}',
     '{select,update (id),update (epoch),update (needs_repair),update (by_tokens),update (repairing),update (rows),
       update (bytes),update (measured_at),update (delivered),update (deduplicated)}'),
    ('replay', '{pgcombine.handoff_hint}', '{select,delete,update (since)}'), -- update: for locking rows
    ('replay', '{pgcombine.handoff_retained}', '{select,delete}'),
    ('replay', '{pgcombine.handoff_delivery,pgcombine.handoff_quarantine}', '{select}')
) p ("right", relations, privileges), unnest(p.relations) r;
insert into pgcombine.component_table (name)
values ('handoff_hint'), ('handoff_retained'), ('handoff_delivery'), ('handoff_quarantine'), ('handoff_refused');
insert into pgcombine.hook (event, query) values ('closed', 'select pgcombine_internal.handoff_drop_queue($1)');
