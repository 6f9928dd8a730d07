-- pgcombine_internal.remove_rollup(rollup)
-- Removes what a rollup adds to its queue: the triggers of its source, its functions and its views.
-- The owner of the schema may drop the functions, and the triggers with them, whoever owns the source. With the last
-- rollup the event triggers go, too (see watch_ddl), if the caller has the rights of their owner.
-- Tables written: pgcombine.rollup.
create or replace function pgcombine_internal.remove_rollup(rollup text)
returns void
language plpgsql
as $$
begin
    -- locks the source before the row of the rollup, as backfill_slice does
    execute format('drop function if exists pgcombine_internal.%I() cascade', rollup || '_rollup');
    -- without the parameter's type, since caller looks for the function's signature in the statements that call it
    execute format('drop function if exists pgcombine_internal.%I', rollup || '_owned');
    -- before the views, or follow_drop would refuse to drop them
    delete from pgcombine.rollup r where r.queue = remove_rollup.rollup;
    execute format('drop view if exists pgcombine.%I, pgcombine_internal.%I, pgcombine.%I', rollup,
        rollup || '_expressions', rollup || '_source');
    if not exists (select from pgcombine.rollup) and exists (
        select from pg_event_trigger t where t.evtname = 'pgcombine_follow_ddl' and pg_has_role(t.evtowner, 'usage'))
    then
        drop event trigger pgcombine_follow_ddl;
        drop event trigger pgcombine_follow_drop;
    end if;
end
$$;
