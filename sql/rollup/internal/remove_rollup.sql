-- pgcombine_internal.remove_rollup(rollup)
-- Removes what a rollup adds to its queue: the triggers of its source with their function, and its views.
-- Triggers are found by their function, so that a former partition's triggers are dropped, too.
-- Tables written: pgcombine.rollup.
-- Errors: 42501 the caller lacks the right to drop triggers of the source.
create or replace function pgcombine_internal.remove_rollup(rollup text)
returns void
language plpgsql
as $$
declare
    _trigger record;
begin
    for _trigger in
        select t.tgname, t.tgrelid::regclass as relation
        from pg_trigger t join pg_proc p on p.oid = t.tgfoid
        where p.pronamespace = 'pgcombine_internal'::regnamespace and p.proname = remove_rollup.rollup || '_rollup'
          and t.tgparentid = 0
        order by t.tgrelid
    loop
        execute format('drop trigger %I on %s', _trigger.tgname, _trigger.relation);
    end loop;
    execute format('drop function if exists pgcombine_internal.%I()', remove_rollup.rollup || '_rollup');
    execute format('drop view if exists pgcombine.%I, pgcombine.%I', remove_rollup.rollup,
        remove_rollup.rollup || '_source');
    delete from pgcombine.rollup r where r.queue = remove_rollup.rollup;
    if not exists (select from pgcombine.rollup) and exists (
        select from pg_event_trigger t where t.evtname = 'pgcombine_follow_ddl' and pg_has_role(t.evtowner, 'usage'))
    then
        drop event trigger pgcombine_follow_ddl;
        drop event trigger pgcombine_follow_drop;
    end if;
exception when insufficient_privilege then
    raise exception 'the triggers of rollup "%" can''t be dropped: %', rollup, sqlerrm
        using errcode = '42501', hint = 'let an owner of the source drop the rollup';
end
$$;
