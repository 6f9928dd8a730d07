-- pgcombine_internal.empty_budget(budget)
-- Removes all chips and holds of a budget when truncate_queue empties its queue. Waits for transactions that use them.
-- Tables written: <budget>_chips, <budget>_holds.
create or replace function pgcombine_internal.empty_budget(budget pgcombine.budget)
returns void
language plpgsql
as $$
begin
    execute format('truncate pgcombine.%I, pgcombine.%I', (budget).queue || '_chips', (budget).queue || '_holds');
end
$$;
