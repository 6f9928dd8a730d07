-- pgcombine_internal.run_pass(plan) → (updates, keys, changes)
-- Runs a planned pass and writes it to the journal.
-- Tables written: <queue>_values; pass; <queue>_quarantine and quarantined_key, if keys are held; failure; those of the
-- observers.
-- Errors: 40001 a rival pass over the bucket has committed since this pass's snapshot; 54000 see refuse_bytes; the
-- errors of combiners and observers.
create or replace function pgcombine_internal.run_pass(plan pgcombine.plan, out updates bigint, out keys bigint, out changes bigint)
language plpgsql
as $$
declare
    _plan constant pgcombine.plan := run_pass.plan;
    _held bigint;
begin
    select 0, 0, 0, 0 into updates, keys, changes, _held;
    if _plan.pending > 0 then -- without updates the observers have nothing to run over
        if _plan.mask >= 4095 then
            perform pgcombine_internal.refuse_bytes(_plan);
        end if;
        execute pgcombine_internal.plan_sql(_plan) into updates, keys, changes, _held;
    end if;
    updates := updates + _held;
    perform pgcombine_internal.end_pass(_plan, updates, keys, changes);
end
$$;
