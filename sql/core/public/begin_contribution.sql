-- pgcombine.begin_contribution(queue) → text
-- Makes a temporary table for a large contribution, and returns its name. Then COPY or insert the source's updates into
-- the table, and call end_contribution in the same transaction.
-- The table has the queue's columns, and takes only inserts. It is dropped at the end of the transaction, or by the
-- next call.
-- Runs with its owner's rights, for roles that may enqueue: code on a table of theirs would run with these rights.
-- Errors: those of open_contributions; 42501 the schema's owner may not make temporary tables; 42P07 the caller has
-- made one of this name.
create or replace function pgcombine.begin_contribution(queue text)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.open_contributions(queue);
    _name constant text := 'pgcombine_contribution_' || _queue.queue;
    _table constant text := format('pg_temp.%I', _name);
begin
    if exists (select from pg_class c where c.oid = to_regclass(_table) and c.relowner = current_user::regrole) then
        execute format('drop table %s', _table);
    end if;
    execute format('create temporary table %I (%s, %s) on commit drop', _name,
        pgcombine_internal.column_list(_queue.queue, 'key', '{name} {type}{collate} not null'),
        pgcombine_internal.column_list(_queue.queue, 'value', '{name} {type}{collate} default {initial}'));
    execute format('grant insert on %s to %I', _table, pgcombine_internal.caller());
    return _table;
end
$$;
