-- pgcombine_internal.regenerate_budget(budget)
-- Creates or replaces the view and the functions of a budget. Every role with the right to enqueue may execute the
-- public functions.
create or replace function pgcombine_internal.regenerate_budget(budget pgcombine.budget)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue constant text := (budget).queue;
    _keys constant text := pgcombine_internal.column_list(_queue, 'key');
    _function record;
    _name text;
begin
    perform pgcombine_internal.replace_view(_queue, pgcombine_internal.fill('
        select {keys}, sum(available)::{type} as available, sum(held)::{type} as held
        from (select {keys}, amount as available, 0 as held from pgcombine.{chips}
              union all select {keys}, 0, amount from pgcombine.{holds}) c
        group by {keys}', jsonb_build_object('keys', _keys, 'type', (budget).amount,
        'chips', quote_ident(_queue || '_chips'), 'holds', quote_ident(_queue || '_holds'))));
    execute format('comment on view pgcombine.%I is %L', _queue,
        format('What each key of budget %s has: available, and held. A key that has nothing is missing.', _queue));
    for _function in select f.* from pgcombine_internal.budget_functions(budget) f loop
        _name := format('%s.%I', case _function.name when '_gather' then 'pgcombine_internal' else 'pgcombine' end,
            _queue || _function.name);
        execute format('create or replace function %s(%s) returns %s language plpgsql %s as %L', _name,
            _function.parameters, _function.result, _function.options, _function.body);
        execute format('comment on function %s is %L', _name, _function.comment);
        execute format('revoke execute on function %s from public', _name);
    end loop;
    perform pgcombine.grant_right('enqueue', g.role, _queue)
    from pgcombine.rights g where g."right" = 'enqueue' and g.queue = _queue;
end
$$;
