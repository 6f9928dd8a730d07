-- pgcombine_internal.move_updates(queue, target, seen, new) → bigint
-- Copies pending updates with their ids to another table of updates, which rebucket prepares; returns their number.
--   seen  only updates that this mark doesn't see; null: all that the marks of their buckets don't see
--   new   only updates that this mark sees; null: all visible ones
create or replace function pgcombine_internal.move_updates(queue text, target text, seen txid_snapshot,
    new txid_snapshot)
returns bigint
language plpgsql
as $$
declare
    _columns constant text := pgcombine_internal.column_list(move_updates.queue) || ', pgcombine_tx';
    _unseen constant text := format(' and (pgcombine_tx >= %s or pgcombine_tx = any (%L))', txid_snapshot_xmax(seen),
        array(select txid_snapshot_xip(seen)));
    _log record;
    _count bigint;
    _moved bigint := 0;
begin
    for _log in
        select l.tables, l.condition || case when seen is not null then _unseen else '' end as condition
        from pgcombine.bucket b cross join lateral pgcombine_internal.bucket_log(b.queue, b.bucket, move_updates.new) l
        where b.queue = move_updates.queue
        order by b.bucket
    loop
        execute format('insert into %s (%s) select %s from %s', target, _columns, _columns,
            pgcombine_internal.log_sql(move_updates.queue, _log.tables, _log.condition));
        get diagnostics _count = row_count;
        _moved := _moved + _count;
    end loop;
    return _moved;
end
$$;
