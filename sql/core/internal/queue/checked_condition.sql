-- pgcombine_internal.checked_condition(queue, option, condition) → text
-- Checks a condition over a queue's columns, and returns it in a form that every session reads alike; null: there is no
-- condition. In a string of the condition, a backslash is an ordinary character (standard_conforming_strings = on).
-- PostgreSQL itself parses the condition twice: in the query of a cursor, which accepts only a single statement, and in
-- a check constraint on a table that the function makes and drops. The constraint rejects subqueries and aggregates,
-- and its catalog row lists the columns.
--   option  delete_when: the condition can name only value columns. expire_when: the condition can name all columns,
--           and must not call a volatile function, since a pass evaluates it more than once
-- Errors: PC003 the condition doesn't parse, isn't boolean, names other columns, or calls a volatile function.
create or replace function pgcombine_internal.checked_condition(queue text, option text, condition text)
returns text
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue constant text := queue;
    _keys constant boolean := option = 'expire_when';
    _table constant text := format('pgcombine.%I', _queue || '_condition');
    _probe refcursor;
    _name text;
    _check record;
begin
    if condition is null then
        return null;
    end if;
    begin
        open _probe for execute format('select 1 from (select %s) as new where (%s)',
            pgcombine_internal.column_list(_queue, form => 'null::{type} as {name}'), condition);
        close _probe;
        execute format('create table %s (like pgcombine.%I, constraint condition check (%s))', _table,
            _queue || '_values', condition);
    exception when others then
        raise exception '% % of queue "%" can''t be used: %', option, quote_literal(condition), _queue, sqlerrm
            using errcode = 'PC003', hint = case
                when _keys then 'give a condition over the key and value columns, for example ''day < now() - '
                'interval ''''90 days'''''''
                                            else 'give a condition over the value columns, for example ''n = 0''' end;
    end;
    select pgcombine_internal.printed_condition(k.conrelid) as expression, k.conkey as columns,
           array(select m[1]::oid from regexp_matches(k.conbin::text, ':(?:op)?funcid (\d+)', 'g') m) as functions
    into _check
    from pg_constraint k where k.conrelid = _table::regclass and k.conname = 'condition';
    select a.attname into _name
    from pg_attribute a
    join pgcombine.queue_column c on c.queue = _queue and c.name = a.attname and c.role = 'key'
    where a.attrelid = _table::regclass and a.attnum = any (_check.columns);
    if found and not _keys then
        raise exception '% % of queue "%" names key column "%"', option, quote_literal(condition), _queue, _name
            using errcode = 'PC003', hint = 'name only value columns';
    end if;
    select p.oid::regprocedure into _name from pg_proc p where p.oid = any (_check.functions) and p.provolatile = 'v';
    if found and _keys then
        raise exception '% % of queue "%" calls %, which is volatile', option, quote_literal(condition), _queue, _name
            using errcode = 'PC003',
                hint = 'use now() for the time at which a pass began; declare your own function stable if it is';
    end if;
    execute format('drop table %s', _table);
    return _check.expression;
end
$$;
