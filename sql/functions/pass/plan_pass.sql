-- pgcombine.plan_pass(queue, bucket [, mask, slice, observers, combiners]) → plan
-- What the next pass over a bucket, which the caller has claimed, is to do. The one place that decides it.
--   mask, slice  only keys whose hash & mask = slice. Null: all, or where more than pass_limit updates are pending the
--                next slice of the keys, so that no pass takes much more; when each slice had its turn, all again
--   observers, combiners  Python observers and columns with a Python combiner that the caller has functions for
-- Of the plan:
--   pass       the number of the pass; began: when; mark: the snapshot whose updates it takes, which a later statement's
--              snapshot may be younger than
--   tables, condition  where these updates are, and which they are
--   pending    how many, counted up to a little more than pass_limit
--   more       whether updates of other keys are pending
--   held       whether keys are quarantined: then their updates go there
--   observe    the Python observers to run over the changes, in this order
-- Errors: PC001 unknown queue; PC003 no such slice; PC008 Python functions are declared that the caller lacks.
create or replace function pgcombine.plan_pass(queue text, bucket integer, mask bigint default null, slice bigint default null,
    observers text[] default '{}', combiners text[] default '{}')
returns pgcombine.plan
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(plan_pass.queue);
    _own constant text := pgcombine.bucket_slice(_queue.queue, plan_pass.bucket);
    _hash constant text := pgcombine.key_hash(_queue.queue);
    _plan pgcombine.plan;
    _done record; -- what is combined
    _all text; -- the condition of the updates of all keys
    _count text;
    _total bigint;
    _slices bigint;
begin
    _plan.queue := _queue.queue;
    _plan.bucket := plan_pass.bucket;
    _plan.began := clock_timestamp();
    _plan.observe := pgcombine.python_observers(_queue.queue, plan_pass.observers, plan_pass.combiners);
    _plan.mark := pgcombine.current_mark();
    select * into _done from pgcombine.bucket_marks(_queue.queue, plan_pass.bucket);
    _plan.pass := _done.pass + 1;
    _plan.held := exists (select from pgcombine.quarantined_key k where k.queue = _queue.queue);
    _plan.tables := pgcombine.unseen_segments(_queue.queue, plan_pass.bucket, pgcombine.oldest_mark(_done.marks), txid_snapshot_xmax(_plan.mark));
    _all := concat_ws(' and ', nullif(_own, ''), pgcombine.marked_sql(_queue.queue, _done.mask, _done.marks, _plan.mark));
    _plan.mask := plan_pass.mask;
    _plan.slice := plan_pass.slice;

    if _plan.mask is null then
        execute format('select count(*) from (select from %s limit %s) as pending',
            pgcombine.log_sql(_queue.queue, _plan.tables, _all), _queue.pass_limit + 1) into _plan.pending;
        if _plan.pending > _queue.pass_limit then
            if _done.mask > 0 then
                -- the slice whose turn was longest ago
                _plan.mask := _done.mask;
                select m.place - 1 into _plan.slice
                from unnest(_done.marks) with ordinality m (mark, place)
                order by txid_snapshot_xmax(m.mark), random() limit 1;
            else
                execute format('select count(*) from %s', pgcombine.log_sql(_queue.queue, _plan.tables, _all)) into _total;
                -- portions grow with the backlog: what is passed over again for each of them stays within bounds
                _slices := 2 ^ ceil(log(2, ceil(_total::numeric / greatest(_queue.pass_limit, _total / 32))));
                _plan.mask := _slices - 1;
                _plan.slice := floor(random() * _slices);
            end if;
        end if;
    elsif not (_plan.mask between 0 and 65535 and _plan.mask & (_plan.mask + 1) = 0 and _plan.slice between 0 and _plan.mask) then
        raise exception 'there is no slice (%, %)', _plan.mask, _plan.slice
            using errcode = 'PC003', hint = 'the mask is 2 ^ k - 1, at most 65535; the slice is 0 to the mask';
    end if;
    _plan.condition := _all;
    if _plan.mask > 0 then
        _plan.condition := format('%s & %s = %s and %s', _hash, _plan.mask, _plan.slice, _all);
        execute format('select count(*) from %s', pgcombine.log_sql(_queue.queue, _plan.tables, _plan.condition)) into _plan.pending;
    end if;
    _plan.more := coalesce(_plan.mask > 0, false);
    return _plan;
end
$$;
