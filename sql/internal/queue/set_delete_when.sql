-- pgcombine_internal.set_delete_when(queue, condition)
-- Checks and stores the condition under which a pass deletes a key. PostgreSQL itself parses it twice. A cursor accepts
-- a single statement only. A check constraint admits neither subqueries nor aggregates, and lists the columns that the
-- condition names.
-- Tables written: pgcombine.queue.
-- Errors: PC003 the condition doesn't parse, isn't boolean, or names other columns than values.
create or replace function pgcombine_internal.set_delete_when(queue text, condition text)
returns void
language plpgsql
as $$
declare
    _queue constant text := set_delete_when.queue;
    _values constant regclass := format('pgcombine.%I', _queue || '_values');
    _probe refcursor;
begin
    begin
        open _probe for execute format('select 1 from (select %s) as new where (%s)', pgcombine_internal.column_list(_queue, form => 'null::{type} as {name}'), condition);
        close _probe;
        execute format('alter table %s add constraint delete_when check (%s)', _values, condition);
    exception when others then
        raise exception 'delete_when % of queue "%" can''t be used: %', quote_literal(condition), _queue, sqlerrm
            using errcode = 'PC003', hint = 'give a condition over the value columns, for example ''n = 0''';
    end;
    perform pgcombine_internal.require(false, 'PC003', format('delete_when %L of queue "%s" names key column "%s"', condition, _queue, a.attname),
        'it may name value columns only')
    from pg_constraint k
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = any (k.conkey)
    join pgcombine.queue_column c on c.queue = _queue and c.name = a.attname and c.role = 'key'
    where k.conrelid = _values and k.conname = 'delete_when';
    update pgcombine.queue q set delete_when = pgcombine_internal.expression_of(k.oid)
    from pg_constraint k where q.queue = _queue and k.conrelid = _values and k.conname = 'delete_when';
    execute format('alter table %s drop constraint delete_when', _values);
    perform pgcombine_internal.warn_of_delete_when(_queue);
end
$$;
