-- What rollups register with the core (see sql/core/component.sql).
insert into pgcombine.right_privilege ("right", object, privileges) values
    ('read', '', 'select');
insert into pgcombine.hook (event, query) values
    ('close', $$
        select format('queue "%s" is a rollup of %s', r.queue, r.source),
               format('select pgcombine.drop_rollup(%L)', r.queue),
               format('select pgcombine_internal.remove_rollup(%L)', r.queue)
        from pgcombine.rollup r where r.queue = $1$$),
    ('close', $$ -- see create_tier
        select null, null, format('select pgcombine.drop_observer(%L, %L)', o.queue, o.observer)
        from pgcombine.observer o where o.observer = 'tier ' || $1
        union all
        select format('queue "%s" feeds the tier "%s"', o.queue, substr(o.observer, 6)),
               'drop the tier first, or pass force => true', 'select'
        from pgcombine.observer o where o.queue = $1 and starts_with(o.observer, 'tier ')$$),
    ('regenerate', 'select pgcombine_internal.regenerate_rollup($1)'),
    ('view', 'select r.queue from pgcombine.rollup r where r.queue = $1'),
    ('generated', 'select r.queue || s from pgcombine.rollup r, unnest(array[''_rollup'', ''_owned'']) s'),
    ('verify', 'select p.problem from pgcombine_internal.rollup_problems($1) p'),
    ('truncate', 'update pgcombine.rollup r set done = 0, boundary = null, ready_at = null where r.queue = $1'),
    ('upkeep', $$
        select format('select pgcombine_internal.backfill_slice(%L, wait => false)', r.queue)
        from pgcombine.rollup r where r.ready_at is null$$);
