-- The rows that the component export registers with the core (see sql/core/component.sql).
insert into pgcombine.right_kind ("right", subject, optional, standing, act, proof) values
    ('export', 'export', false, 'pgcombine.every_export', 'deliver export', '_exports');
insert into pgcombine.right_privilege ("right", relation, privileges, partitions) values
    ('work', 'sequence pgcombine.export_sequence', '{usage}', false),
    ('operate', 'sequence pgcombine.export_sequence', '{usage}', false),
    ('monitor', 'pgcombine.destination', '{select}', false),
    ('export', 'sequence pgcombine.export_sequence', '{select}', false),
    ('export', '_exports', '{select,delete}', true);
insert into pgcombine.component_table (name, marked) values ('export_quarantine', 'since = ''-infinity''');
insert into pgcombine.hook (event, query) values
    ('close', $$
        select format('queue "%s" is exported by "%s"', e.queue, e.export),
               format('deliver its entries and drop it first (pgcombine export run %1$s --drain; '
                   'pgcombine export drop %1$s), or pass force => true to drop it with its entries', e.export),
               format('select pgcombine.drop_export(%L, force => true)', e.export)
        from pgcombine.export e where e.queue = $1 order by e.export$$),
    ('regenerate', 'select pgcombine_internal.regenerate_export(e.export) from pgcombine.export e where e.queue = $1');
