-- pgcombine_internal.handoff_require_reader(queue)
-- Raises unless the caller of a function that runs with its owner's rights may read the queue's current values or hand
-- on its writes.
-- Errors: 42501 the caller may do neither; PC001 unknown queue.
create or replace function pgcombine_internal.handoff_require_reader(queue text)
returns void
language plpgsql stable
as $$
declare
    _role constant name := pgcombine_internal.caller();
begin
    perform pgcombine_internal.require_queue(handoff_require_reader.queue);
    if not has_table_privilege(_role, format('pgcombine.%I', handoff_require_reader.queue || '_current')::regclass,
        'select') then
        perform pgcombine_internal.handoff_require(handoff_require_reader.queue);
    end if;
end
$$;
