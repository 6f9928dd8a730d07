-- pgcombine.add_observer(queue, observer, statement)
-- pgcombine.add_observer(queue, observer, language => 'python')
-- Declares an observer. In SQL: a statement that every pass of the queue runs in its transaction over the relation
-- changes: the key columns, old_<value> and new_<value> (null: there was or is no value). It is part of the
-- pass's own statement: insert, update, delete (merge from PostgreSQL 17 on), or a select that calls a function.
-- It sees the tables as they were before the pass, and finds them on the search path of who runs the pass: qualify
-- their names. Where updates cancel out changes is empty, of which an aggregate still makes a row: having count(*) > 0.
-- It runs with the rights of who runs the pass, and so does a trigger on a table that it writes: whoever owns such a
-- table, or may make a trigger on it, can do what the worker may. Let the schema's owner own these tables, and let it
-- and the workers be ordinary roles, no superusers.
-- In Python: a function of that name that
-- pgcombine worker --app runs; other passes are refused from now on. If it raises, the pass rolls back and is tried
-- again; a key that is at fault is quarantined (see fail_pass).
-- Tables written: pgcombine.observer, queue.
-- Errors: PC001 unknown queue; PC002 the observer exists; PC003 the statement doesn't work over changes.
create or replace function pgcombine.add_observer(queue text, observer text, statement text default null, language text default 'sql')
returns void
language plpgsql
as $$
declare
    _part text; -- of the plan
    _line text;
    _runs boolean := false;
begin
    perform pgcombine.require_queue(add_observer.queue);
    if add_observer.language is null or add_observer.language not in ('sql', 'python') then
        raise exception 'observers are in sql or python, not in %', coalesce(quote_literal(add_observer.language), 'null')
            using errcode = 'PC003', hint = 'language => ''python''';
    end if;
    if coalesce(btrim(observer), '') = '' or (coalesce(btrim(statement), '') = '') <> (add_observer.language = 'python') then
        raise exception 'an observer of queue "%" needs a name and, in SQL, a statement', add_observer.queue
            using errcode = 'PC003', hint = 'insert into audit select word, old_n, new_n from changes';
    end if;
    begin
        insert into pgcombine.observer (queue, observer, language, statement)
        values (add_observer.queue, add_observer.observer, add_observer.language,
                nullif(rtrim(add_observer.statement, E' \t\r\n;'), ''));
    exception when unique_violation then
        raise exception 'queue "%" has an observer "%"', add_observer.queue, observer
            using errcode = 'PC002', hint = 'drop_observer first, or choose another name';
    end;
    if add_observer.language = 'python' then
        return;
    end if;
    perform pgcombine.regenerate_pass(add_observer.queue);
    _part := format('CTE observer_%s$', (select count(*) from pgcombine.observer o where o.queue = add_observer.queue and o.language = 'sql'));
    begin -- compile it; as a part of the pass it can be one statement only
        for _line in execute 'explain (costs off) ' || pgcombine.combine_sql(add_observer.queue, 0) loop
            _runs := _runs or _line ~ _part;
        end loop;
        if not _runs then -- PostgreSQL leaves out of a plan what only reads, and whose rows nobody asks for
            raise syntax_error using message = 'it reads, but doesn''t begin with select';
        end if;
    exception when others then
        raise exception 'observer "%" of queue "%" doesn''t work: %', observer, add_observer.queue, sqlerrm
            using errcode = 'PC003', hint = 'one insert, update, delete or select over changes: the key columns, old_… and new_…';
    end;
end
$$;
