-- pgcombine_internal.handoff_require([queue, reads])
-- Raises an error unless the caller may replicate writes (the right handoff) and, if a queue is named, those to this
-- queue.
--   reads  whether the right to read the queue's current values is enough
-- Errors: 42501 the caller lacks the right to replicate writes; PC001 unknown queue.
create or replace function pgcombine_internal.handoff_require(queue text default null, reads boolean default false)
returns void
language plpgsql stable
as $$
declare
    _role constant name := pgcombine_internal.caller();
begin
    if queue is not null then
        perform pgcombine_internal.require_queue(queue);
    end if;
    if reads and has_table_privilege(_role,
            format('pgcombine.%I', queue || '_current')::regclass, 'select') then
        return;
    end if;
    if queue is not null then
        perform pgcombine_internal.require_right(queue, 'handoff', _role);
    end if;
    perform pgcombine_internal.require(has_table_privilege(_role, 'pgcombine.handoff_server', 'select'), '42501',
        format('permission denied: role "%s" may not replicate writes', _role),
        format('the right handoff on a queue: pgcombine.grant_right(''handoff'', %L, …)', _role));
end
$$;
