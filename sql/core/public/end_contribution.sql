-- pgcombine.end_contribution(queue, source) → bigint
-- Does what contribute does, with the rows of the table that begin_contribution made in this transaction. Drops the
-- table.
-- Tables written: those of contribute.
-- Errors: PC014 begin_contribution wasn't called in this transaction; those of contribute.
create or replace function pgcombine.end_contribution(queue text, source text)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.open_contributions(queue);
    _table constant text := format('pg_temp.%I', 'pgcombine_contribution_' || _queue.queue);
    _updates bigint;
begin
    -- another table of this name may be the caller's, whose policies and rules are the caller's code
    perform pgcombine_internal.require(exists (
            select from pg_class c where c.oid = to_regclass(_table) and c.relowner = current_user::regrole), 'PC014',
        format('no contribution to queue "%s" was begun in this transaction', _queue.queue),
        'call pgcombine.begin_contribution first');
    _updates := pgcombine_internal.replace_contribution(_queue.queue, source, _table);
    execute format('drop table %s', _table);
    return _updates;
end
$$;
