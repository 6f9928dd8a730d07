-- pgcombine_internal.checked_condition(queue, option, condition, example [, keys]) → text
-- Checks a condition over a queue's columns and returns it with qualified names. PostgreSQL itself parses it twice. A
-- cursor accepts a single statement only. A check constraint admits neither subqueries nor aggregates, and lists the
-- columns that the condition names. The constraint is on a table that is made for it and dropped, so no table of the queue
-- is locked.
--   option   the option's name, for messages
--   example  for the hint
--   keys     whether it may name key columns, too
-- Errors: PC003 the condition doesn't parse, isn't boolean, names other columns, or calls a volatile function.
create or replace function pgcombine_internal.checked_condition(queue text, option text, condition text, example text, keys boolean default false)
returns text
language plpgsql
as $$
declare
    _queue constant text := checked_condition.queue;
    _table constant text := format('pgcombine.%I', _queue || '_condition');
    _probe refcursor;
    _expression text;
    _functions oid[];
begin
    begin
        open _probe for execute format('select 1 from (select %s) as new where (%s)', pgcombine_internal.column_list(_queue, form => 'null::{type} as {name}'), condition);
        close _probe;
        execute format('create table %s (like pgcombine.%I, constraint condition check (%s))', _table, _queue || '_values', condition);
    exception when others then
        raise exception '% % of queue "%" can''t be used: %', option, quote_literal(condition), _queue, sqlerrm
            using errcode = 'PC003', hint = format('give a condition over the %s columns, for example %L',
                case when checked_condition.keys then 'key and value' else 'value' end, example);
    end;
    perform pgcombine_internal.require(checked_condition.keys, 'PC003', format('%s %L of queue "%s" names key column "%s"', option, condition, _queue, a.attname),
        'it may name value columns only')
    from pg_constraint k
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = any (k.conkey)
    join pgcombine.queue_column c on c.queue = _queue and c.name = a.attname and c.role = 'key'
    where k.conrelid = _table::regclass and k.conname = 'condition';
    select pgcombine_internal.expression_of(k.oid),
           array(select (m)[1]::oid from regexp_matches(k.conbin::text, ':(?:op)?funcid (\d+)', 'g') m)
    into _expression, _functions
    from pg_constraint k where k.conrelid = _table::regclass and k.conname = 'condition';
    execute format('drop table %s', _table);
    perform pgcombine_internal.require(false, 'PC003', format('%s %L of queue "%s" calls %s, which is volatile', option, condition, _queue, p.oid::regprocedure),
        'its result may differ within one statement; now() is the time at which a pass began')
    from pg_proc p where p.oid = any (_functions) and p.provolatile = 'v';
    return _expression;
end
$$;
