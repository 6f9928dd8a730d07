-- pgcombine_internal.remove_budget(budget)
-- Removes what a budget adds to its queue: the view, the functions, and the tables of chips and holds.
-- Tables written: pgcombine.budget, component_table.
create or replace function pgcombine_internal.remove_budget(budget pgcombine.budget)
returns void
language plpgsql
as $$
begin
    execute (
        select string_agg(format('drop function %s', p.oid::regprocedure), '; ')
        from pgcombine_internal.budget_functions(budget) f
        join pg_proc p on p.proname = (budget).queue || f.name
            and p.pronamespace = case f.name when '_gather' then 'pgcombine_internal' else 'pgcombine'
                end::regnamespace);
    execute format('drop view if exists pgcombine.%I', (budget).queue);
    execute format('drop table pgcombine.%I, pgcombine.%I', (budget).queue || '_chips', (budget).queue || '_holds');
    delete from pgcombine.component_table t where t.name in ((budget).queue || '_chips', (budget).queue || '_holds');
    delete from pgcombine.budget b where b.queue = (budget).queue;
end
$$;
