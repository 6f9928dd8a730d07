-- What budgets register with the core (see sql/core/component.sql).
insert into pgcombine.right_privilege ("right", object, privileges)
select 'enqueue', f, 'execute' from unnest('{_add,_take,_take_all,_hold,_settle,_release}'::text[]) f;
insert into pgcombine.right_privilege ("right", object, privileges) values ('read', '', 'select')
on conflict do nothing; -- another component has views of this name, too
insert into pgcombine.hook (event, query) values
    ('close', $$
        select format('queue "%s" is a budget', b.queue), format('select pgcombine.drop_budget(%L)', b.queue),
               format('select pgcombine_internal.remove_budget(b) from pgcombine.budget b where b.queue = %L', b.queue)
        from pgcombine.budget b where b.queue = $1$$),
    ('truncate', 'select pgcombine_internal.empty_budget(b) from pgcombine.budget b where b.queue = $1'),
    ('regenerate', 'select pgcombine_internal.regenerate_budget(b) from pgcombine.budget b where b.queue = $1'),
    ('generated', $$
        select b.queue || s from pgcombine.budget b,
            unnest('{_add,_take,_take_all,_hold,_settle,_release,_gather}'::text[]) s$$),
    ('verify', 'select v.problem from pgcombine.budget b, pgcombine.verify_budget(b.queue) v where b.queue = $1'),
    ('drain', 'select pgcombine_internal.tend_budget(b) from pgcombine.budget b where b.queue = $1'),
    ('upkeep', $$
        select format('select pgcombine_internal.tend_budget(b) from pgcombine.budget b where b.queue = %L', b.queue)
        from pgcombine.budget b$$);
