-- pgcombine_internal.require_budget(budget) → pgcombine.budget
-- Returns the catalog row of a budget.
-- Errors: PC001 unknown queue; PC003 the queue isn't a budget.
create or replace function pgcombine_internal.require_budget(budget text)
returns pgcombine.budget
language plpgsql stable
as $$
declare
    _budget pgcombine.budget;
begin
    perform pgcombine_internal.require_queue(require_budget.budget);
    select b.* into _budget from pgcombine.budget b where b.queue = require_budget.budget;
    perform pgcombine_internal.require(found, 'PC003', format('queue "%s" isn''t a budget', require_budget.budget),
        'select queue from pgcombine.budget lists the budgets');
    return _budget;
end
$$;
