-- pgcombine_internal.handoff_require([queue, reads])
-- Raises an error unless the caller may replicate writes (the right handoff) and, if a queue is named, insert into all
-- columns of <queue>_updates.
--   reads  whether the right to read the queue's current values is enough
-- Errors: 42501 the caller lacks the right to replicate writes; PC001 unknown queue.
create or replace function pgcombine_internal.handoff_require(queue text default null, reads boolean default false)
returns void
language plpgsql stable
as $$
declare
    _role constant name := pgcombine_internal.caller();
begin
    if handoff_require.queue is not null then
        perform pgcombine_internal.require_queue(handoff_require.queue);
    end if;
    if handoff_require.reads and has_table_privilege(_role,
            format('pgcombine.%I', handoff_require.queue || '_current')::regclass, 'select') then
        return;
    end if;
    perform pgcombine_internal.require(has_table_privilege(_role, 'pgcombine.handoff_server', 'select'), '42501',
        format('permission denied: role "%s" may not replicate writes', _role),
        format('select pgcombine.grant_right(''handoff'', %L)', _role));
    perform pgcombine_internal.require(
        handoff_require.queue is null or pgcombine_internal.has_right(handoff_require.queue, 'write', _role), '42501',
        format('permission denied for table %s_updates', handoff_require.queue),
        format('select pgcombine.grant_right(''handoff'', %L, %L)', _role, handoff_require.queue));
end
$$;
