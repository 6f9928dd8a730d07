-- pgcombine.begin_pass(queue [, bucket, observers, combiners, mask, slice])
--     → (bucket, statement, condition, packed, folds, pending, more, diverted, observe)
-- What every pass does before its statement: claims the bucket, makes sure that nothing declared is left out,
-- moves updates of quarantined keys out of the way, and chooses what to run. No row: the bucket is busy (another
-- pass has it), nothing is pending where no bucket was given, or the queue is paused.
--   bucket     the bucket, or null for the next one with pending updates
--   observers  Python observers that the caller runs, combiners: columns whose Python combiner it runs
--   mask, slice  take only keys whose hash & mask = slice; mask -1 is a single key. Null: see next_pass
--   statement  what to execute: it returns updates, keys, changes
--   condition  where clause of the rows that the statement takes, empty: all of the bucket
--   packed     whether some of these are packed (see combine_sql)
--   folds      whether the statement folds and reports nothing
--   pending    how many updates are in the bucket, counted up to the pass limit; null: a slice was asked for
--   more       whether the bucket holds more than the statement takes; diverted: updates of quarantined keys
--   observe    the Python observers to run over the changes, in this order
-- The claim comes first. Under read committed the pass's statement then sees all that was committed before the
-- claim. Under repeatable read the snapshot precedes the claim: had a rival pass committed in between, the
-- delete raises 40001, and the caller runs the pass again.
-- Tables written: failure, where the bucket's last pass failed and this one takes all; those that unpack and divert
-- write.
-- Errors: PC001 unknown queue; PC003 no such bucket; 42501 the caller may not run passes over the queue; PC008
-- Python functions are declared that the caller lacks.
create or replace function pgcombine.begin_pass(queue text, inout bucket integer default null,
    observers text[] default '{}', combiners text[] default '{}', mask bigint default null, slice bigint default null,
    out statement text, out condition text, out packed boolean, out folds boolean, out pending bigint, out more boolean,
    out diverted bigint, out observe text[])
returns setof record
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(begin_pass.queue);
    _lacking text;
    _claimed boolean := false; -- after a loop, found tells only whether it ran
    _moves bigint; -- of the bucket
    _unpacked boolean; -- what was packed when the pass began
    _unpack text;
begin
    if begin_pass.bucket is null then
        for begin_pass.bucket in select w.bucket from pgcombine.busy(_queue.queue) w order by random() loop
            select b.moves into _moves from pgcombine.bucket b
            where b.queue = _queue.queue and b.bucket = begin_pass.bucket for update skip locked;
            _claimed := found;
            exit when _claimed;
        end loop;
        if not _claimed then
            perform pgcombine.require_right(_queue.queue, 'work');
            return;
        end if;
    elsif _queue.paused then
        return;
    else
        select b.moves into _moves from pgcombine.bucket b
        where b.queue = _queue.queue and b.bucket = begin_pass.bucket for update skip locked;
        if not found then
            if begin_pass.bucket not between 0 and _queue.buckets - 1 then
                perform pgcombine.combine_sql(_queue.queue, begin_pass.bucket); -- raises PC003
            end if;
            perform pgcombine.require_right(_queue.queue, 'work'); -- without it a claim finds nothing, either
            return;
        end if;
    end if;

    select string_agg(format('observer "%s"', o.observer), ', ' order by o.position)
               filter (where not o.observer = any (begin_pass.observers)),
           coalesce(array_agg(o.observer order by o.position), '{}')
    into _lacking, observe
    from pgcombine.observer o where o.queue = _queue.queue and o.language = 'python';
    select concat_ws(', ', string_agg(format('combiner of column "%s"', c.name), ', ' order by c.position), _lacking)
    into _lacking
    from pgcombine.queue_column c
    where c.queue = _queue.queue and c.combiner = 'python' and not c.name = any (begin_pass.combiners);
    if _lacking <> '' then
        raise exception 'queue "%" has functions in Python that can''t be run here: %', _queue.queue, _lacking
            using errcode = 'PC008', hint = 'pgcombine worker --app module:attribute runs them';
    end if;

    _unpacked := mask is not null or exists (select from pgcombine.quarantined_key k where k.queue = _queue.queue)
        or (_moves > 0 and not pgcombine.packs(_queue.queue)); -- but it may have, before rebucket
    if _unpacked then
        perform pgcombine.unpack(_queue.queue, begin_pass.bucket, false);
    end if;
    diverted := pgcombine.divert(_queue.queue, begin_pass.bucket);
    if begin_pass.mask is null then
        loop
            select p.statement, p.condition, p.packed, p.folds, p.pending, p.more, p.unpack
            into begin_pass.statement, begin_pass.condition, begin_pass.packed, begin_pass.folds, begin_pass.pending, begin_pass.more, _unpack
            from pgcombine.next_pass(_queue.queue, begin_pass.bucket, _unpacked) p;
            exit when _unpack is null;
            perform pgcombine.unpack(_queue.queue, begin_pass.bucket, _unpack = 'strays');
            _unpacked := _unpacked or _unpack = 'all';
        end loop;
    else
        begin_pass.condition := pgcombine.not_quarantined(_queue.queue,
            format('%s & %s = %s', pgcombine.key_hash(_queue.queue), begin_pass.mask, begin_pass.slice));
        begin_pass.statement := pgcombine.combine_sql(_queue.queue, begin_pass.bucket, begin_pass.condition, few => true);
        folds := false;
        more := true;
    end if;
    if not more then
        update pgcombine.bucket b set since = null -- what was folded goes now
        where b.queue = _queue.queue and b.bucket = begin_pass.bucket and b.since is not null;
        perform pgcombine.forget_failure(_queue.queue, begin_pass.bucket);
    end if;
    return next;
end
$$;
