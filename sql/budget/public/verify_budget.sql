-- pgcombine.verify_budget(budget) → (problem)
-- Compares what the keys of a budget have with the current values of its queue, in one snapshot. Returns one row for
-- each key that differs. The call changes nothing. Updates that were inserted into <budget>_updates directly, and
-- quarantined ones, are differences.
-- Errors: PC001 unknown queue; PC003 the queue isn't a budget; 42501 the caller doesn't own the schema.
create or replace function pgcombine.verify_budget(budget text)
returns table (problem text)
language plpgsql stable
as $$
declare
    _queue constant text := (pgcombine_internal.require_budget(verify_budget.budget)).queue;
begin
    perform pgcombine_internal.require_owner();
    return query execute pgcombine_internal.fill('
        select format(''key %s: %s available and %s held, but the queue has %s and %s'', row({given}),
            coalesce(b.available, 0), coalesce(b.held, 0), coalesce(c.available, 0), coalesce(c.held, 0))
        from pgcombine.{budget} b full join pgcombine.{current} c on {same}
        where (coalesce(b.available, 0), coalesce(b.held, 0)) <> (coalesce(c.available, 0), coalesce(c.held, 0))',
        jsonb_build_object('budget', quote_ident(_queue), 'current', quote_ident(_queue || '_current'),
            'given', pgcombine_internal.column_list(_queue, 'key', 'coalesce(b.{name}, c.{name})'),
            'same', pgcombine_internal.column_list(_queue, 'key', 'b.{name} {equals} c.{name}', ' and ')));
end
$$;
