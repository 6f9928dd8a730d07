-- pgcombine_internal.has_right(queue, right [, role]) → boolean
-- Returns whether a role has a right. Rights are PostgreSQL's own privileges on the queue's tables, or on the schema's.
--   right  enqueue  insert on <queue>_updates, or on some of its columns
--          a right of a component  on each relation of the queue the last privilege that right_privilege lists, or the
--                   right work. The privilege may be only a mark: without a unique index on <queue>_updates no foreign
--                   key can refer to the table
--          read     select on all columns of <queue>_values or of <queue>_current, and no row security policies that
--                   hide values from the role: functions that check this right return whole rows
--          work     delete on pgcombine.pass
--          monitor  select on pgcombine.pass_minute
--          use      any of these, or select on columns of <queue>_values, <queue>_current or <queue>_updates: see how
--                   much is pending
create or replace function pgcombine_internal.has_right(queue text, "right" text, role name default current_user)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _updates constant regclass := to_regclass('pgcombine.' || quote_ident(queue || '_updates'));
    _values constant regclass := to_regclass('pgcombine.' || quote_ident(queue || '_values'));
    _current constant regclass := to_regclass('pgcombine.' || quote_ident(queue || '_current'));
begin
    return coalesce(case has_right."right"
        when 'work' then has_table_privilege(role, 'pgcombine.pass', 'delete')
        when 'monitor' then has_table_privilege(role, 'pgcombine.pass_minute', 'select')
        when 'enqueue' then has_any_column_privilege(role, _updates, 'insert')
        when 'read' then exists (
                select from unnest(array[_values, _current]) t (relation)
                where (select bool_and(has_column_privilege(has_right.role, t.relation, a.attnum, 'select'))
                       from pg_attribute a
                       where a.attrelid = t.relation and a.attnum > 0 and not a.attisdropped))
            and not pgcombine_internal.under_policies(_values, role)
        when 'use' then has_any_column_privilege(role, _updates, 'insert, select')
                     or has_any_column_privilege(role, _values, 'select')
                     or has_any_column_privilege(role, _current, 'select')
                     or pgcombine_internal.has_right(has_right.queue, 'work', role)
                     or pgcombine_internal.has_right(has_right.queue, 'monitor', role)
        else (select bool_and(has_any_column_privilege(has_right.role,
                         to_regclass('pgcombine.' || quote_ident(has_right.queue || l.object)),
                         substring(l.privileges from '([a-z]+)[^,]*$')))
              from pgcombine.right_privilege l where l."right" = has_right."right" and l.object !~ '[.]')
            or pgcombine_internal.has_right(has_right.queue, 'work', role)
    end, false);
end
$$;
