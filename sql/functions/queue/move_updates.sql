-- pgcombine.move_updates(queue, suffix, seen, new) → bigint
-- Copies pending updates, with their ids, to the updates table with the suffix, where rebucket prepares it: how many.
--   seen  those that this mark doesn't see. Null: that the marks of their buckets don't see
--   new   those that this mark sees. Null: all that are visible
create or replace function pgcombine.move_updates(queue text, suffix text, seen txid_snapshot, new txid_snapshot)
returns bigint
language plpgsql
as $$
declare
    _columns text;
    _bucket integer;
    _log record;
    _count bigint;
    _moved bigint := 0;
begin
    select string_agg(format('%I', c.name), ', ' order by c.position) || ', pgcombine_tx' into _columns
    from pgcombine.queue_column c where c.queue = move_updates.queue;
    for _bucket in select b.bucket from pgcombine.bucket b where b.queue = move_updates.queue order by b.bucket loop
        select l.tables, l.condition into _log from pgcombine.bucket_log(move_updates.queue, _bucket, move_updates.new) l;
        if cardinality(_log.tables) > 0 then
            execute format('insert into pgcombine.%I (%2$s) select %2$s from %3$s', move_updates.queue || '_updates' || suffix, _columns,
                pgcombine.log_sql(move_updates.queue, _log.tables, _log.condition
                    || coalesce(' and not txid_visible_in_snapshot(pgcombine_tx, ' || quote_literal(move_updates.seen) || ')', '')));
            get diagnostics _count = row_count;
            _moved := _moved + _count;
        end if;
    end loop;
    return _moved;
end
$$;
