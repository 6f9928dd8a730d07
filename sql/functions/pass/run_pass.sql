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
    select 0, 0, 0, 0 into updates, keys, changes, _held;
    if _plan.pending > 0 then -- else there is nothing for observers, either
        execute pgcombine.plan_sql(_plan) into updates, keys, changes, _held;
    end if;
    updates := updates + _held;
    perform pgcombine.end_pass(_plan, updates, keys, changes);
end
$$;
