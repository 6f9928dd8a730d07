-- pgcombine_internal.handoff_enter(queue)
-- Keeps a rebuild of this server from beginning until the transaction ends (see handoff_rebuild_begin).
-- Runs with its owner's rights, since the lock takes a right to write. It is for roles that may insert into the queue's
-- updates.
-- Errors: 42501 the caller may not hand on writes of the queue; PC001 unknown queue; PC046 this server is being
-- rebuilt.
create or replace function pgcombine_internal.handoff_enter(queue text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.handoff_require(handoff_enter.queue);
    begin
        lock table pgcombine.handoff_partial in row exclusive mode nowait;
    exception when lock_not_available then
        raise exception 'this server is being rebuilt'
            using errcode = 'PC046', hint = 'write to another server, which keeps hints for this one';
    end;
end
$$;
