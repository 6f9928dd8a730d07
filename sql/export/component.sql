-- The rows that the component export registers with the core (see sql/core/component.sql).
insert into pgcombine.right_privilege ("right", object, privileges) values
    ('monitor', 'pgcombine.destination', 'select'),
    ('monitor', 'pgcombine.export_stat', 'select');
insert into pgcombine.component_table (name) values ('export_entry');
insert into pgcombine.hook (event, query) values
    ('close', $$
        select format('queue "%s" is exported by "%s"', e.queue, e.export),
               format('deliver its entries and drop it first (pgcombine export run %1$s --drain; '
                   'pgcombine export drop %1$s), or pass force => true to drop it with its entries', e.export),
               format('select pgcombine.drop_export(%L, force => true)', e.export)
        from pgcombine.export e where e.queue = $1 order by e.export$$),
    ('rebucketing', $$
        select from pgcombine.export_bucket x join pgcombine.export e using (export)
        where e.queue = $1 order by x.export, x.bucket for update of x$$),
    ('rebucket', 'select pgcombine_internal.rebucket_export(e) from pgcombine.export e where e.queue = $1'),
    ('regenerate', 'select pgcombine_internal.regenerate_export(e) from pgcombine.export e where e.queue = $1');
