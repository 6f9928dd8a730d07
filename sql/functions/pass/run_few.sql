-- pgcombine.run_few(statement) → (updates, keys, changes)
-- Runs the statement of a pass that takes few updates. The planner can't know that they are few (a table that
-- fills and empties has no statistics that hold) and would read all values to join some of them.
create or replace function pgcombine.run_few(statement text, out updates bigint, out keys bigint, out changes bigint)
language plpgsql
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    execute run_few.statement into updates, keys, changes;
end
$$;
