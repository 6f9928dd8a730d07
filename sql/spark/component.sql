-- The rows that the component spark registers with the core (see sql/core/component.sql).
insert into pgcombine.right_privilege ("right", object, privileges) values
    ('monitor', 'pgcombine.load_stat', 'select');
insert into pgcombine.component_table (name) values ('spark_load');
insert into pgcombine.hook (event, query) values
    ('clean_up', $$
        select n.what, n.count
        from pgcombine_internal.clean_loads() c,
            lateral (values ('loads', c.loads), ('runs', c.runs)) n (what, count)
        where n.count > 0$$);
