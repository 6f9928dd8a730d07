-- pgcombine.detach(queue, source)
-- Detaches a table from a queue: changes of the table enqueue nothing any more. The queue's values stay.
-- Tables written: pgcombine.attachment.
-- Errors: PC001 unknown queue; PC003 the table isn't attached; 42501 the caller lacks the right to detach it.
create or replace function pgcombine.detach(queue text, source regclass)
returns void
language plpgsql
as $$
declare
    _id integer;
    _trigger record;
begin
    perform pgcombine_internal.require_queue(detach.queue);
    select a.id into _id from pgcombine.attachment a where a.queue = detach.queue and a.source = detach.source;
    perform pgcombine_internal.require(found, 'PC003',
        format('queue "%s" isn''t attached to %s', detach.queue, detach.source),
        'select queue, source from pgcombine.attachment lists the attached tables');
    for _trigger in -- found by function, so that a former partition's triggers are dropped, too
        select t.tgname, t.tgrelid::regclass as relation
        from pg_trigger t join pg_proc p on p.oid = t.tgfoid join pg_class c on c.oid = t.tgrelid
        where p.pronamespace = 'pgcombine_internal'::regnamespace and t.tgparentid = 0
          and p.proname = pgcombine_internal.attached_function(_id)
          and (t.tgrelid in (select pgcombine_internal.descendants(detach.source)) or pg_has_role(c.relowner, 'usage'))
    loop
        execute format('drop trigger %I on %s', _trigger.tgname, _trigger.relation);
    end loop;
    perform pgcombine_internal.forget_attachment(_id);
end
$$;
