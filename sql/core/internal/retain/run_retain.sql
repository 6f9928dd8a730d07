-- pgcombine_internal.run_retain(plan) → (removed, next_page)
-- Runs a step that plan_retain has planned, for a queue without Python observers.
--   removed    number of removed keys
--   next_page  see end_retain
-- Tables written: <queue>_values; retention; those of the observers.
-- Errors: 40001 a rival pass over the bucket has committed since this step's snapshot; the errors of observers.
create or replace function pgcombine_internal.run_retain(plan pgcombine.plan, out removed bigint, out next_page bigint)
language plpgsql
as $$
declare
    _updates bigint;
begin
    execute pgcombine_internal.plan_sql(run_retain.plan) into _updates, removed;
    next_page := pgcombine_internal.end_retain(run_retain.plan, run_retain.removed);
end
$$;
