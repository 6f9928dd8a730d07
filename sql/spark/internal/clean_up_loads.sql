-- pgcombine_internal.clean_up_loads() → (loads, runs)
-- Calls clean_loads without arguments, for workers whose role doesn't own the schema.
-- Runs with its owner's rights, for roles with the right to run passes over some queue.
-- Tables written: those of clean_loads.
-- Errors: 42501 the caller lacks the right to run passes over any queue.
create or replace function pgcombine_internal.clean_up_loads(out loads bigint, out runs bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _role constant name := pgcombine_internal.caller();
begin
    if not exists (select from pgcombine.queue q where pgcombine_internal.has_right(q.queue, 'work', _role)) then
        raise exception 'permission denied: role "%" can run passes over no queue', _role
            using errcode = '42501', hint = format('select pgcombine.grant_right(''work'', %L, ''*'')', _role);
    end if;
    select c.loads, c.runs into clean_up_loads.loads, clean_up_loads.runs from pgcombine_internal.clean_loads() c;
end
$$;
