-- pgcombine.next_pass(queue, bucket [, unpacked]) → (statement, condition, packed, folds, pending, more, unpack)
-- Which statement the next pass over the bucket runs, so that no pass takes much more than a portion of the updates:
-- pass_limit, or a 32nd of the bucket where that is more. A pass reads the bucket several times to find its portion;
-- with portions of a fixed size a backlog would cost its square.
--   all     the whole bucket, if no more are pending
--   fold    when keys repeat, and where more is packed than a portion: combine a portion of the updates among
--           themselves and put the fewer results back
--   slice   when they don't: whole keys, those of one slice of the keys' hash, which is reported as usual
-- condition restricts the rows that all and slice take, packed says whether some of them are (see combine_sql);
-- folds: it is a fold. Updates of quarantined keys are left out. A queue with a Python combiner can't be folded here.
-- pending is the number of updates in the bucket, counted up to pass_limit.
-- unpack, if it isn't null, is what must be unpacked before there can be a statement (see unpack): strays (where rows
-- can't be unpacked, too), or all,
-- since whole keys are to be taken; unpacked: that was done in this pass, and what is packed now came later and waits.
-- A key is reported only by a pass that takes all its updates, however many passes fold them before.
-- Where few updates are pending among many dead ones (somebody holds an old snapshot, or nobody has vacuumed yet), the
-- statement names their rows, so as not to walk over the dead ones again, twice.
create or replace function pgcombine.next_pass(queue text, bucket integer, unpacked boolean default false, out statement text, out condition text,
    out packed boolean, out folds boolean, out pending bigint, out more boolean, out unpack text)
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(next_pass.queue);
    _table constant text := (pgcombine.bucket_tables(_queue.queue, next_pass.bucket))[1];
    _own constant text := pgcombine.bucket_slice(_queue.queue, next_pass.bucket);
    _updates constant text := _table || case when _own = '' then '' else ' where ' || _own end;
    _packs constant boolean := pgcombine.packs(_queue.queue);
    _foldable constant boolean := not exists (
        select from pgcombine.queue_column c where c.queue = next_pass.queue and c.combiner = 'python');
    _few constant integer := 5000;
    _rows tid[]; -- of the pending updates
    _named text;
    _hash text;
    _pending bigint;
    _portion bigint;
    _distinct bigint;
    _packed bigint;
    _strays boolean; -- some rows were packed for another number of buckets
    _unfit boolean; -- some can't be unpacked
    _is_unfit constant text := (select f.lengths || ' or ' || f.keys from pgcombine.unfit_packed(_queue.queue) f);
    _plain text := nullif(_own, ''); -- the condition for plain rows of the bucket
    _slices bigint;
    _slice text;
begin
    execute format('select count(*), %s, %s from (select %s from %s limit %s) as pending',
        case when _packs then 'count(pgcombine_packed)' else '0' end,
        case when _foldable and pg_stat_get_dead_tuples(_table::regclass) > 50000 then 'array_agg(ctid)' else 'null' end,
        case when _packs then 'ctid, pgcombine_packed' else 'ctid' end, _updates, _queue.pass_limit + 1)
    into pending, _packed, _rows;
    if cardinality(_rows) <= _few then
        _named := format('where ctid = any (%L)', _rows);
    end if;
    if _packed > 0 then
        execute format(
            'select $1 + coalesce(sum(cardinality(pgcombine_0)), 0), bool_or(pgcombine_packed %% $2 <> 0), bool_or(%s)
             from (select * from %s %s and pgcombine_packed is not null limit %s) as packed',
            _is_unfit, _table, coalesce(_named, 'where true'), _queue.pass_limit + 1)
        into pending, _strays, _unfit using pending, _queue.partitions;
    end if;
    more := pending > _queue.pass_limit;
    folds := false;
    condition := pgcombine.not_quarantined(_queue.queue);
    if _strays or _unfit then
        unpack := 'strays';
        return;
    elsif _packed > 0 and condition <> '' and not next_pass.unpacked then -- since begin_pass looked
        unpack := 'all';
        return;
    end if;
    if not more then
        if condition <> '' then
            null; -- plain rows only
        elsif _named is not null then
            condition := _named;
            packed := case when _packs then _packed > 0 end;
        elsif current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
            packed := _packed > 0; -- the pass has the same snapshot
        elsif _packed > 0 then -- but for a stray that comes only now
            condition := format('where num_nulls(nullif(pgcombine_packed %% %s, 0)) <> 0', _queue.partitions);
            packed := true;
        else
            condition := 'where true';
        end if;
        statement := pgcombine.combine_sql(_queue.queue, next_pass.bucket, condition, packed => packed, few => pending < 1000);
        return;
    end if;

    if _packs and not next_pass.unpacked then
        execute format('select sum(cardinality(pgcombine_0)), count(pgcombine_packed), bool_or(pgcombine_packed %% %s <> 0) or bool_or(%s) filter (where pgcombine_packed is not null) from %s',
            _queue.partitions, _is_unfit, _updates)
        into _pending, _packed, _strays;
        _portion := greatest(_queue.pass_limit, _pending / 32);
        if _packed > 0 and (_strays or _pending <= _portion) then
            -- to fold them first would be all that passes ever do where somebody always enqueues
            unpack := case when _strays then 'strays' else 'all' end;
            return;
        elsif _packed > 0 then
            folds := true;
            statement := format(_queue.fold, _table, greatest(1, _portion * _packed / _pending),
                format('where pgcombine_packed %% %s = 0', _queue.partitions), next_pass.bucket);
            return;
        end if;
    end if;

    if pgcombine.plain_rows(_queue.queue) <> '' then
        _plain := concat_ws(' and ', _plain, pgcombine.plain_rows(_queue.queue) || 'true');
    end if;
    _hash := pgcombine.key_hash(_queue.queue);
    execute format('select count(*) from %s', _updates) into _pending;
    _portion := greatest(_queue.pass_limit, _pending / 32);
    execute format('select count(distinct %s) from (select * from %s limit %s) as sample', _hash, _updates, _portion)
    into _distinct;
    if _foldable and _distinct <= _portion / 2 then
        folds := true;
        statement := format(_queue.fold, _table, _portion,
            pgcombine.not_quarantined(_queue.queue, _plain), next_pass.bucket);
        return;
    end if;

    -- the slice of the first update that is met: so each pass makes progress, and nothing needs remembering
    _slices := 2 ^ ceil(log(2, ceil(_pending::numeric / _portion)));
    execute format('select format(''%%s & %%s = %%s'', $1, $2, %s & $2) from %s limit 1', _hash, _updates)
    into _slice using _hash, _slices - 1;
    execute format('select count(*), count(distinct %s) from %s %s %s', _hash, _updates, case when _own = '' then 'where' else 'and' end, _slice)
    into _pending, _distinct;
    if _foldable and _pending > 4 * _portion and _distinct <= _pending / 4 then
        -- a key with very many updates is in it; twice as many updates as keys become fewer in any case
        folds := true;
        statement := format(_queue.fold, _table, greatest(_portion, 2 * _distinct),
            pgcombine.not_quarantined(_queue.queue, concat_ws(' and ', _plain, _slice)), next_pass.bucket);
    else
        condition := pgcombine.not_quarantined(_queue.queue, _slice);
        statement := pgcombine.combine_sql(_queue.queue, next_pass.bucket, condition);
    end if;
end
$$;
