-- pgcombine_internal.has_right(subject, right [, role]) → boolean
-- Returns whether a role has a right on a queue. Rights are PostgreSQL's own privileges on the queue's tables.
--   right  enqueue     insert on <queue>_updates, or on some of its columns
--          write       insert on all of the queue's own columns of <queue>_updates
--          initialize  insert on <queue>_values: the initial load
--          load        enqueue or initialize
--          read        select on all columns of <queue>_values or of <queue>_current, and no row security policies that
--                      hide values from the role: functions that check this right return whole rows
--          work        truncate on <queue>_updates and update on <queue>_values: run passes
--          operate     delete on <queue>_quarantine: pause, resume, end quarantines
--          monitor     select on the column monitor of pgcombine.every_queue, for all queues
--          watch       work, operate or monitor: see that passes fail
--          explain     work or operate, or monitor and read: see why they fail, since errors name keys and values
--          use         any of these, or select on columns of <queue>_values, <queue>_current or <queue>_updates: see
--                      how much is pending
--          any other   delete on the relation that right_kind.proof names. Components add such rights; their subject
--                      may be another object than a queue
-- The search path is pinned: policies call this function, and the caller's path must not decide what it calls.
create or replace function pgcombine_internal.has_right(subject text, "right" text, role name default current_user)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _updates constant regclass := to_regclass(format('pgcombine.%I', has_right.subject || '_updates'));
    _values constant regclass := to_regclass(format('pgcombine.%I', has_right.subject || '_values'));
    _current constant regclass := to_regclass(format('pgcombine.%I', has_right.subject || '_current'));
begin
    return coalesce(case has_right."right"
        when 'work' then has_table_privilege(role, _updates, 'truncate')
                      and has_table_privilege(role, _values, 'update')
        when 'enqueue' then has_any_column_privilege(role, _updates, 'insert')
        when 'write' then (select bool_and(has_column_privilege(has_right.role, _updates, c.name, 'insert'))
                           from pgcombine.queue_column c where c.queue = has_right.subject)
        when 'initialize' then has_any_column_privilege(role, _values, 'insert')
        when 'load' then has_any_column_privilege(role, _updates, 'insert')
                      or has_any_column_privilege(role, _values, 'insert')
        when 'read' then exists (
                select from unnest(array[_values, _current]) t (relation)
                where (select bool_and(has_column_privilege(has_right.role, t.relation, a.attnum, 'select'))
                       from pg_attribute a
                       where a.attrelid = t.relation and a.attnum > 0 and not a.attisdropped))
            and not pgcombine_internal.under_policies(subject, role)
        when 'operate' then has_table_privilege(role, to_regclass(format('pgcombine.%I', subject || '_quarantine')),
                                                'delete')
        when 'monitor' then has_column_privilege(role, 'pgcombine.every_queue', 'monitor', 'select')
        when 'watch' then pgcombine_internal.has_right(subject, 'work', role)
                       or pgcombine_internal.has_right(subject, 'operate', role)
                       or pgcombine_internal.has_right(subject, 'monitor', role)
        when 'explain' then pgcombine_internal.has_right(subject, 'work', role)
            or pgcombine_internal.has_right(subject, 'operate', role)
            or pgcombine_internal.has_right(subject, 'monitor', role)
               and pgcombine_internal.has_right(subject, 'read', role)
        when 'use' then has_any_column_privilege(role, _updates, 'select')
                     or has_any_column_privilege(role, _values, 'select')
                     or has_any_column_privilege(role, _current, 'select')
                     or pgcombine_internal.has_right(subject, 'load', role)
                     or pgcombine_internal.has_right(subject, 'watch', role)
        else (select has_table_privilege(has_right.role, to_regclass(case when k.proof like E'\\_%'
                         then 'pgcombine.' || quote_ident(has_right.subject || k.proof) else k.proof end), 'delete')
              from pgcombine.right_kind k where k."right" = has_right."right")
    end, false);
end
$$;
