-- pgcombine.run_pass(plan) → (updates, keys, changes)
-- Runs a planned pass and writes it down.
-- Tables written: the values; pass; the quarantine's, where keys are in it; failure.
-- Errors: 40001 a rival has passed over the bucket, or observers came or went meanwhile; whatever a combiner or an observer
-- raises.
create or replace function pgcombine.run_pass(plan pgcombine.plan, out updates bigint, out keys bigint, out changes bigint)
language plpgsql
as $$
declare
    _plan constant pgcombine.plan := run_pass.plan;
    _held bigint;
begin
    if _plan.pending = 0 then -- nothing for observers, either
        updates := 0;
        keys := 0;
        changes := 0;
    else
        execute pgcombine.plan_sql(_plan) into updates, keys, changes, _held;
        updates := updates + _held;
    end if;
    perform pgcombine.end_pass(_plan, updates, keys, changes);
end
$$;
