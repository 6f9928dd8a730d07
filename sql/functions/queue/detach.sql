-- pgcombine.detach(queue, source)
-- Ends what attach began: changes of the table are no longer enqueued. Values stay as they are.
-- Errors: PC001 unknown queue; PC003 it isn't attached.
create or replace function pgcombine.detach(queue text, source regclass)
returns void
language plpgsql
as $$
declare
    _trigger name;
    _there boolean := false;
begin
    perform pgcombine.require_queue(detach.queue);
    for _trigger in
        select t.tgname from pg_trigger t
        where t.tgrelid = detach.source and t.tgfoid = 'pgcombine.attached'::regproc and not t.tgisinternal
          and t.tgname in (select 'pgcombine_' || detach.queue || '_' || e from unnest(array['insert', 'update', 'delete', 'truncate']) e)
    loop
        _there := true;
        execute format('drop trigger %I on %s', _trigger, detach.source);
    end loop;
    if not _there then
        raise exception 'queue "%" isn''t attached to %', detach.queue, detach.source
            using errcode = 'PC003', hint = 'the triggers of a table that is attached are named pgcombine_<queue>_…';
    end if;
end
$$;
