-- pgcombine.end_fold(queue) → bigint
-- Enqueues what was written to pg_temp.pgcombine_fold since begin_fold, folded by key with the queue's own combiners;
-- returns how many updates that are.
-- Tables written: <queue>_updates.
-- Errors: PC001 unknown queue.
create or replace function pgcombine.end_fold(queue text)
returns bigint
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(end_fold.queue);
    _columns text;
    _keys text;
    _folds text;
    _updates bigint;
begin
    select string_agg(format('%I', c.name), ', ' order by c.position),
           string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'),
           string_agg(format('%s as %I', pgcombine.fold_expression(c), c.name), ', ' order by c.position) filter (where c.role = 'value')
    into _columns, _keys, _folds
    from pgcombine.queue_column c where c.queue = _queue.queue;
    execute format('insert into pgcombine.%I (%s) select %s, %s from %s group by %3$s', _queue.queue || '_updates',
        _columns, _keys, _folds, pgcombine.fold_source(_queue.queue, 'pg_temp.pgcombine_fold'));
    get diagnostics _updates = row_count;
    return _updates;
end
$$;
