-- pgcombine_internal.full_state_condition(queue, after) → text
-- Returns the condition that a full state hasn't reached a key yet: the key comes after another one in the order of the
-- primary key. Null: the full state has reached no key. The operators don't depend on the search path.
--   after  the last key that was reached, as a JSON object of texts; {}: none
create or replace function pgcombine_internal.full_state_condition(queue text, after jsonb)
returns text
language plpgsql stable
as $$
declare
    _column record;
    _after text;
begin
    if after = '{}' then
        return null;
    end if;
    for _column in
        select quote_ident(c.name) as name, format('%L::%s', full_state_condition.after ->> c.name, c.type) as reached,
               count(*) over () as columns,
               (pgcombine_internal.type_operator(c.type::regtype, 3)).name as equals,
               (pgcombine_internal.type_operator(c.type::regtype, 4)).name as from_on,
               (pgcombine_internal.type_operator(c.type::regtype, 5)).name as greater
        from pgcombine.queue_column c
        where c.queue = full_state_condition.queue and c.role = 'key' order by c.position desc
    loop
        _after := format(case when _after is null then '%1$s %2$s %3$s'
            else '(%1$s %2$s %3$s or %1$s %4$s %3$s and %5$s)' end,
            _column.name, _column.greater, _column.reached, _column.equals, _after);
    end loop;
    -- an index finds the first column's condition
    return case when _column.columns = 1 then _after
        else format('%s %s %s and %s', _column.name, _column.from_on, _column.reached, _after) end;
end
$$;
