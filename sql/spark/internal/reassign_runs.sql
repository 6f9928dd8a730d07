-- pgcombine_internal.reassign_runs(queue, from_role, to_role) → bigint
-- Copies the run ids of one role to another, for a Spark job that changes its role. Runs that were applied for the
-- first role then count as applied for the second, too. Returns the number of run ids copied. A caller that is neither
-- the owner of the schema nor a member of the first role sees none of its run ids, and copies none.
-- Tables written: pgcombine.token.
-- Errors: PC001 unknown queue; 42501 there are run ids to copy, but the caller lacks the rights: neither does it own
-- the schema, nor is it a member of the second role with the right to load into the queue.
create or replace function pgcombine_internal.reassign_runs(queue text, from_role name, to_role name)
returns bigint
language plpgsql
as $$
declare
    _runs bigint;
begin
    perform pgcombine_internal.require_queue(reassign_runs.queue);
    insert into pgcombine.token (queue, role, token, updates)
    select r.queue, reassign_runs.to_role, r.token, r.updates
    from pgcombine.token r
    where r.queue = reassign_runs.queue and r.role = reassign_runs.from_role
    on conflict do nothing;
    get diagnostics _runs = row_count;
    return _runs;
end
$$;
