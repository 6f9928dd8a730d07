-- pgcombine_internal.handoff_require([queue])
-- Raises unless the caller may hand on writes (the right handoff) and, if a queue is named, insert into all the queue's
-- columns of <queue>_updates. It is the first statement of the functions for writers that run with their owner's
-- rights. These pin the search path.
-- Errors: 42501 the caller may not hand on writes; PC001 unknown queue.
create or replace function pgcombine_internal.handoff_require(queue text default null)
returns void
language plpgsql stable
as $$
declare
    _role constant name := pgcombine_internal.caller();
    _updates constant regclass := to_regclass('pgcombine.' || quote_ident(handoff_require.queue || '_updates'));
begin
    if not has_table_privilege(_role, 'pgcombine.handoff_server', 'select') then
        raise exception 'permission denied: role "%" may not hand on writes', _role
            using errcode = '42501', hint = format('select pgcombine.grant_right(''handoff'', %L)', _role);
    end if;
    if _updates is null and handoff_require.queue is not null then
        perform pgcombine_internal.require_queue(handoff_require.queue);
    end if;
    if handoff_require.queue is not null
        and not pgcombine_internal.has_right(handoff_require.queue, 'write', _role) then
        raise exception 'permission denied for table %_updates', handoff_require.queue
            using errcode = '42501',
                hint = format('select pgcombine.grant_right(''handoff'', %L, %L)', _role, handoff_require.queue);
    end if;
end
$$;
