-- pgcombine.drop_budget(budget [, force])
-- Drops a budget with its queue.
--   force  whether to drop it even if amounts are held, updates are pending, or another component uses its queue
-- Tables written: those of drop_queue.
-- Errors: PC001 unknown queue; PC003 the queue isn't a budget; PC005, without force, amounts are held; those of
-- drop_queue.
create or replace function pgcombine.drop_budget(budget text, force boolean default false)
returns void
language plpgsql
as $$
declare
    _budget constant pgcombine.budget := pgcombine_internal.require_budget(drop_budget.budget);
    _held bigint;
begin
    perform pgcombine_internal.require_owner();
    execute format('select count(*) from pgcombine.%I', _budget.queue || '_holds') into _held;
    perform pgcombine_internal.require(force or _held = 0, 'PC005', format('budget "%s" has %s holds', _budget.queue,
        _held), 'settle or release them first, or pass force => true');
    perform pgcombine_internal.remove_budget(_budget);
    perform pgcombine.drop_queue(_budget.queue, force);
end
$$;
