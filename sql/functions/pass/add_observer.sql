-- pgcombine.add_observer(queue, observer, statement)
-- pgcombine.add_observer(queue, observer, language => 'python')
-- Declares an observer. In SQL: a statement that every pass of the queue runs in its transaction over the relation
-- changes: the key columns, old_<value> and new_<value> (null: there was or is no value). It is part of the
-- pass's own statement: insert, update, delete (merge from PostgreSQL 17 on), or a select that calls a function.
-- It sees the tables as they were before the pass, and finds them on the search path of who runs the pass: qualify
-- their names. Where updates cancel out changes is empty, of which an aggregate still makes a row: having count(*) > 0.
-- It and triggers on the tables that it writes run with the rights of who runs the pass: who owns such a table can do what
-- the worker may. Let the schema's owner own these tables, and let it and the workers be ordinary roles, no superusers.
-- In Python: a function of that name that pgcombine worker --app runs; other passes are refused from now on. If it raises,
-- the pass rolls back and is tried again; a key that is at fault is quarantined (see fail_pass).
-- Tables written: pgcombine.observer, queue.
-- Errors: PC001 unknown queue; PC002 the observer exists; PC003 the statement doesn't work over changes.
create or replace function pgcombine.add_observer(queue text, observer text, statement text default null, language text default 'sql')
returns void
language plpgsql
as $$
declare
    _queue constant text := (pgcombine.require_queue(add_observer.queue)).queue;
    _part text; -- of the plan
    _line text;
    _runs boolean := false;
begin
    perform pgcombine.require(add_observer.language in ('sql', 'python'), 'PC003',
        'observers are in sql or python, not in ' || coalesce(quote_literal(add_observer.language), 'null'), 'language => ''python''');
    perform pgcombine.require(btrim(observer) <> '' and (coalesce(btrim(statement), '') = '') = (add_observer.language = 'python'), 'PC003',
        format('an observer of queue "%s" needs a name and, in SQL, a statement', _queue), 'insert into audit select word, old_n, new_n from changes');
    insert into pgcombine.observer (queue, observer, language, statement)
    values (_queue, add_observer.observer, add_observer.language, nullif(rtrim(add_observer.statement, E' \t\r\n;'), ''))
    on conflict do nothing;
    perform pgcombine.require(found, 'PC002', format('queue "%s" has an observer "%s"', _queue, observer), 'drop_observer first, or choose another name');
    if add_observer.language = 'python' then
        return;
    end if;
    perform pgcombine.regenerate_pass(_queue);
    _part := format('CTE observer_%s$', (select count(*) from pgcombine.observer o where o.queue = _queue and o.language = 'sql'));
    begin -- compile it; as a part of the pass it can be one statement only
        for _line in execute 'explain (costs off) ' || pgcombine.combine_sql(_queue, 0) loop
            _runs := _runs or _line ~ _part;
        end loop;
        if not _runs then -- PostgreSQL leaves out of a plan what only reads, and whose rows nobody asks for
            raise syntax_error using message = 'it reads, but doesn''t begin with select';
        end if;
    exception when others then
        raise exception 'observer "%" of queue "%" doesn''t work: %', observer, _queue, sqlerrm
            using errcode = 'PC003', hint = 'one insert, update, delete or select over changes: the key columns, old_… and new_…';
    end;
end
$$;
