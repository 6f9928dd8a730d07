-- What attached tables register with the core (see sql/core/component.sql).
insert into pgcombine.hook (event, query) values
    ('close', $$ -- cascade drops the triggers, also those of another role's table
        select case when c.oid is not null then
                   format('queue "%s" is attached to %s: without the queue, changes of that table would fail', a.queue,
                       a.source) end,
               'detach it first, or pass force => true',
               format('drop function if exists pgcombine_internal.%I() cascade; delete from pgcombine.attachment where '
                   'id = %s',
                   pgcombine_internal.attached_function(a.id), a.id)
        from pgcombine.attachment a left join pg_class c on c.oid = a.source
        where a.queue = $1 order by a.id$$),
    ('close', $$ -- see create_tier
        select null, null, format('select pgcombine.drop_observer(%L, %L)', o.queue, o.observer)
        from pgcombine.observer o where o.observer = 'tier ' || $1
        union all
        select format('queue "%s" feeds the tier "%s"', o.queue, substr(o.observer, 6)),
               'drop the tier first, or pass force => true', 'select'
        from pgcombine.observer o where o.queue = $1 and starts_with(o.observer, 'tier ')$$),
    ('regenerate', 'select pgcombine_internal.regenerate_attached($1)'),
    -- regenerate has warned
    ('generated', 'select pgcombine_internal.attached_function(a.id) from pgcombine.attachment a'),
    ('verify', $$
        select format('trigger %s of the attached table %s is %s: %s', t.name, t.relation, t.state,
                      case t.state when 'disabled' then 'alter table … enable trigger'
                          else 'run pgcombine db upgrade' end)
        from pgcombine.attachment a cross join lateral pgcombine_internal.attached_triggers(a.id) t
        where a.queue = $1 and t.state is not null$$),
    ('recount', 'select r.problem from pgcombine_internal.recount($1) r');
