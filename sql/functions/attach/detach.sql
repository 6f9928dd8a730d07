-- pgcombine.detach(queue, source)
-- Ends what attach began: changes of the table are no longer enqueued. Values stay as they are.
-- Tables written: pgcombine.attachment.
-- Errors: PC001 unknown queue; PC003 it isn't attached.
create or replace function pgcombine.detach(queue text, source regclass)
returns void
language plpgsql
as $$
declare
    _id integer;
    _trigger record;
begin
    perform pgcombine.require_queue(detach.queue);
    select a.id into _id from pgcombine.attachment a where a.queue = detach.queue and a.source = detach.source;
    if not found then
        raise exception 'queue "%" isn''t attached to %', detach.queue, detach.source
            using errcode = 'PC003', hint = 'select queue, source from pgcombine.attachment tells which tables are';
    end if;
    for _trigger in -- also of a table that was a partition once
        select t.tgname, t.tgrelid::regclass as relation
        from pg_trigger t join pg_proc p on p.oid = t.tgfoid
        where p.pronamespace = 'pgcombine'::regnamespace and p.proname = pgcombine.attached_function(_id) and t.tgparentid = 0
    loop
        execute format('drop trigger %I on %s', _trigger.tgname, _trigger.relation);
    end loop;
    perform pgcombine.forget_attachment(_id);
end
$$;
