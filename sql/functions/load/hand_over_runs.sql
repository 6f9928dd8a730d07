-- pgcombine.hand_over_runs(queue, from_role, to_role) → bigint
-- For a job that runs as another role from now on: what was applied for the one role counts as applied for the other,
-- too; how many run ids that are. They stay known for the former role.
-- Tables written: pgcombine.spark_run.
-- Errors: PC001 unknown queue; 42501 by who is neither the owner nor a member of both roles.
create or replace function pgcombine.hand_over_runs(queue text, from_role name, to_role name)
returns bigint
language plpgsql
as $$
declare
    _runs bigint;
begin
    perform pgcombine.require_queue(hand_over_runs.queue);
    insert into pgcombine.spark_run (queue, role, run_id, updates)
    select r.queue, hand_over_runs.to_role, r.run_id, r.updates
    from pgcombine.spark_run r
    where r.queue = hand_over_runs.queue and r.role = hand_over_runs.from_role
    on conflict do nothing;
    get diagnostics _runs = row_count;
    return _runs;
end
$$;
