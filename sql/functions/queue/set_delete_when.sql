-- pgcombine.set_delete_when(queue, condition)
-- Checks and stores the condition under which a pass deletes a key. PostgreSQL itself reads it: first as a
-- cursor, which takes a single statement only, then as a check constraint, which admits neither subqueries
-- nor aggregates and tells the columns that are named.
-- Tables written: pgcombine.queue.
-- Errors: PC003 it doesn't parse, isn't boolean, or names other than value columns.
create or replace function pgcombine.set_delete_when(queue text, condition text)
returns void
language plpgsql
as $$
declare
    _values constant regclass := format('pgcombine.%I', set_delete_when.queue || '_values');
    _nulls text;
    _probe refcursor;
    _expression text;
    _other text;
begin
    select string_agg(format('null::%s as %I', c.type, c.name), ', ' order by c.position) into _nulls
    from pgcombine.queue_column c where c.queue = set_delete_when.queue;
    begin
        open _probe for execute format('select 1 from (select %s) as new where (%s)', _nulls, condition);
        close _probe;
        execute format('alter table %s add constraint delete_when check (%s)', _values, condition);
    exception
        when others then
            raise exception 'delete_when % of queue "%" can''t be used: %', quote_literal(condition), set_delete_when.queue, sqlerrm
                using errcode = 'PC003', hint = 'give a condition over the value columns, for example ''n = 0''';
    end;

    select pgcombine.expression_of(k.oid), (
        select string_agg(format('"%s"', a.attname), ', ')
        from pg_attribute a
        join pgcombine.queue_column c on c.queue = set_delete_when.queue and c.name = a.attname and c.role = 'key'
        where a.attrelid = k.conrelid and a.attnum = any (k.conkey))
    into strict _expression, _other
    from pg_constraint k
    where k.conrelid = _values and k.conname = 'delete_when';
    if _other is not null then
        raise exception 'delete_when % of queue "%" names key column %', quote_literal(condition), set_delete_when.queue, _other
            using errcode = 'PC003', hint = 'it may name value columns only';
    end if;
    execute format('alter table %s drop constraint delete_when', _values);
    update pgcombine.queue q set delete_when = _expression where q.queue = set_delete_when.queue;
    perform pgcombine.warn_of_delete_when(set_delete_when.queue);
end
$$;
