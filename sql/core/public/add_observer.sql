-- pgcombine.add_observer(queue, observer, statement)
-- pgcombine.add_observer(queue, observer, language => 'python')
-- Adds an observer to a queue: every pass that commits later runs it over the changes of the pass. The call waits for
-- running passes, and no pass begins until the caller's transaction ends.
--   statement  an insert, update, delete, merge (PostgreSQL 17 and later), or a select that calls a function. It reads
--              the relation changes, the relation arrived, or both. The relation changes has the key columns,
--              old_<value> and new_<value> (null: the key had or has no value). The relation arrived has the key and
--              value columns: one row for each key, with the pass's updates of the key combined with each other but not
--              with the old value. The statement sees the tables as they were before the pass. Its names are looked up
--              on the search path of the session that runs the pass, so qualify them. {pgcombine_bucket} stands for the
--              number of the pass's bucket
--   language   sql, or python: a function of the observer's name, which pgcombine worker --app runs
-- The relation changes is for consumers; the relation arrived feeds other queues. Differences of new and old values
-- can't feed a queue: they lack late updates of expired keys, each expired key would take its value out of the other
-- queue, and some combiners (min, max, hll) have no differences. A key that a pass removes because it has expired isn't
-- in arrived, but its late updates are. Updates of a quarantined key are in arrived once the key is retried.
-- The statement can read no other part of the pass's statement. If updates cancel out, the relation changes is empty,
-- but an aggregate over this relation still returns a row: add having count(*) > 0. The statement, and triggers on the
-- tables that it writes, run with the rights of the role that runs the pass. So the owner of such a table can do
-- everything that the worker can. Let the schema's owner own these tables, and make neither the owner nor the workers
-- superusers.
-- Passes that can't run an observer in Python raise PC008. If an observer raises an error, the pass rolls back and is
-- tried again. A key that keeps failing is quarantined (see fail_pass).
-- Tables written: pgcombine.observer, queue, bucket.
-- Errors: PC001 unknown queue; PC002 the observer exists; PC003 an invalid name or language, or the statement doesn't
-- work over changes and arrived, or reads another part of the pass; 40001 another session has changed the queue since
-- the snapshot; 42501 the caller isn't the owner.
create or replace function pgcombine.add_observer(queue text, observer text, statement text default null,
    language text default 'sql')
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue constant text := (pgcombine_internal.require_queue(queue)).queue;
    _part text; -- the name by which the plan shows the observer
    _line text;
    _runs boolean := false;
begin
    if (language in ('sql', 'python')) is not true then
        raise exception 'observers are in sql or python, not in %', quote_nullable(language)
            using errcode = 'PC003', hint = 'pass language => ''sql'' or language => ''python''';
    elsif (btrim(observer) <> ''
        and (coalesce(btrim(statement), '') = '') = (language = 'python')) is not true then
        raise exception 'an observer of queue "%" needs a name and, in SQL, a statement', _queue
            using errcode = 'PC003',
                hint = 'an example of a statement: insert into audit select word, old_n, new_n from changes';
    end if;
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.claim_buckets(_queue, renew => true);
    insert into pgcombine.observer (queue, observer, language, statement)
    values (_queue, add_observer.observer, add_observer.language,
        nullif(rtrim(add_observer.statement, E' \t\r\n;'), ''))
    on conflict do nothing;
    perform pgcombine_internal.require(found, 'PC002', format('queue "%s" already has an observer "%s"', _queue,
        observer), 'drop_observer first, or choose another name');
    if language = 'sql' then
        perform pgcombine_internal.check_observer(_queue, observer);
    end if;
    perform pgcombine_internal.regenerate_pass(_queue);
    if language = 'python' then
        return;
    end if;
    _part := format('CTE pgcombine_observer_%s$',
        (select count(*) from pgcombine.observer o where o.queue = _queue and o.language = 'sql'));
    begin -- planning the pass checks that the statement is valid and is a single one
        for _line in
            execute 'explain (costs off) execute '
                || pgcombine_internal.prepare_pass(pgcombine_internal.require_queue(_queue), 0)
                || '(null, null, null, null, null, null, null, null, null)'
        loop
            _runs := _runs or _line ~ _part;
        end loop;
        if not _runs then -- a plan lacks a CTE that only reads, if no other part reads the CTE's rows
            raise syntax_error using message = 'it only reads, so it must begin with select';
        end if;
    exception when others then
        raise exception 'observer "%" of queue "%" doesn''t work: %', observer, _queue, sqlerrm
            using errcode = 'PC003',
                hint = 'give one insert, update, delete or select over changes, which has the key columns, old_… and '
                'new_…, or over arrived, which has the key and value columns';
    end;
end
$$;
