-- pgcombine_internal.verify_triggers(queue) → problems
-- The part of verify that finds triggers that are missing or disabled: those of the queue's tables and those of the
-- attached tables.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.verify_triggers(queue text)
returns setof text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(verify_triggers.queue);
begin
    return query
    select format('trigger %s of pgcombine.%I is %s', t.name, t.relation, case when g.oid is null then 'missing' else 'disabled' end)
    from (values ('pgcombine_wake', _queue.queue || '_updates', true),
                 ('pgcombine_limit', _queue.queue || '_updates', _queue.max_backlog is not null),
                 ('pgcombine_values', _queue.queue || '_values', true)) t (name, relation, needed)
    left join pg_trigger g on g.tgname = t.name and g.tgrelid = format('pgcombine.%I', t.relation)::regclass
    where t.needed and coalesce(g.tgenabled, 'D') = 'D';
    return query
    select format('trigger %s of the attached table %s is %s: %s', t.name, t.relation, t.state,
                  case t.state when 'disabled' then 'alter table … enable trigger' else 'run pgcombine db upgrade' end)
    from pgcombine.attachment a cross join lateral pgcombine_internal.attached_triggers(a.id) t
    where a.queue = _queue.queue and t.state is not null;
end
$$;
