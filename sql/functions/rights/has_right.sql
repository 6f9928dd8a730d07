-- pgcombine.has_right(queue, right [, role]) → boolean
-- Whether a role may do something with a queue. Rights are PostgreSQL's own privileges on the queue's tables; this is
-- the one place that says which privilege is which right.
--   right  enqueue     insert on <queue>_updates, or on some of its columns
--          initialize  insert on <queue>_values: the initial load
--          load        enqueue or initialize
--          read        select on <queue>_values or <queue>_current
--          use         any of these, or select on <queue>_updates, as workers have
-- The search path is fixed: policies call this, and the caller's path must not say what it calls.
create or replace function pgcombine.has_right(queue text, "right" text, role name default current_user)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _updates constant regclass := to_regclass(format('pgcombine.%I', has_right.queue || '_updates'));
    _values constant regclass := to_regclass(format('pgcombine.%I', has_right.queue || '_values'));
    _current constant regclass := to_regclass(format('pgcombine.%I', has_right.queue || '_current'));
    _enqueue constant boolean := has_any_column_privilege(has_right.role, _updates, 'insert');
    _initialize constant boolean := has_any_column_privilege(has_right.role, _values, 'insert');
    _read constant boolean := has_any_column_privilege(has_right.role, _values, 'select')
                           or has_any_column_privilege(has_right.role, _current, 'select');
begin
    return coalesce(case has_right."right"
        when 'enqueue' then _enqueue
        when 'initialize' then _initialize
        when 'load' then _enqueue or _initialize
        when 'read' then _read
        when 'use' then _enqueue or _initialize or _read or has_any_column_privilege(has_right.role, _updates, 'select')
    end, false);
end
$$;
