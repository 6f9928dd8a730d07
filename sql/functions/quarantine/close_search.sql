-- pgcombine.close_search(plan, last, attempts, changes, suspects, sqlstates, errors, proven) → (updates, keys, quarantined, settled)
-- Part of isolate: quarantines the keys that are at fault, and writes down what was passed over.
--   plan      of the pass; attempts: how many failed in a row before
--   last      up to which key of the search all were tried: the last one of a slice
--   changes   how many values the search has changed
--   suspects  the keys that failed on their own; sqlstates, errors: how
--   proven    those of them that are at fault whatever the others do
-- A key that fails is at fault if other keys pass. If none does, all may fail for a common reason (an observer's table is
-- gone): then it is quarantined only if it alone fails, in no other bucket of the queue, and no other key is quarantined.
-- A slice in which a key fails that isn't quarantined isn't written down: where values have changed there is none.
--   updates, keys  passed over, in slices that were written down
--   settled        whether nothing is left of the bucket that fails or wasn't tried
-- Tables written: as quarantine_key; <queue>_quarantine; pass; failure.
create or replace function pgcombine.close_search(plan pgcombine.plan, last integer, attempts integer, changes bigint,
    suspects integer[], sqlstates text[], errors text[], proven integer[],
    out updates bigint, out keys bigint, out quarantined bigint, out settled boolean)
language plpgsql
as $$
declare
    _plan pgcombine.plan := close_search.plan;
    _all constant boolean := not exists (select from pg_temp.pgcombine_search where pgcombine_key > close_search.last);
    _at_fault constant integer[] := case
        when changes > 0 then suspects
        when cardinality(proven) > 0 or cardinality(suspects) <> 1 or not _all
             or exists (select from pgcombine.failure f where f.queue = _plan.queue and f.bucket <> _plan.bucket)
             or exists (select from pgcombine.quarantined_key k where k.queue = _plan.queue) then proven
        else suspects end;
    _columns text;
    _members text;
    _keys text;
    _key jsonb;
    _id bigint;
    _held bigint;
    _slice bigint;
begin
    select string_agg(format('%I', c.name), ', ' order by c.position),
           string_agg(format('%L, %I', c.name, c.name), ', ' order by c.position) filter (where c.role = 'key'),
           string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key')
    into _columns, _members, _keys
    from pgcombine.queue_column c where c.queue = _plan.queue;
    for _number in 1 .. cardinality(suspects) loop
        continue when not suspects[_number] = any (_at_fault);
        execute format('select jsonb_build_object(%s) from pg_temp.pgcombine_search where pgcombine_key = $1 limit 1', _members)
        into _key using suspects[_number];
        insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error)
        values (_plan.queue, _key, 0, close_search.attempts, sqlstates[_number], errors[_number])
        returning id into _id;
        update pg_temp.pgcombine_search set pgcombine_held = _id where pgcombine_key = suspects[_number];
    end loop;
    execute format('insert into pgcombine.%I select distinct on (pgcombine_key) %s, pgcombine_held from pg_temp.pgcombine_search where pgcombine_key = any ($1)',
        _plan.queue || '_quarantine_keys', _keys)
    using _at_fault;
    quarantined := cardinality(_at_fault);

    delete from pg_temp.pgcombine_search s
    where s.pgcombine_key > close_search.last
       or s.pgcombine_slice in (
           select o.pgcombine_slice from pg_temp.pgcombine_search o
           where o.pgcombine_key = any (suspects) and o.pgcombine_held is null);
    execute format(
        'with held as (
             insert into pgcombine.%1$I (pgcombine_key, %2$s)
             select pgcombine_held, %2$s from pg_temp.pgcombine_search where pgcombine_held is not null
             returning pgcombine_key
         ), counted as (
             update pgcombine.quarantined_key k set updates = k.updates + h.updates
             from (select pgcombine_key, count(*) as updates from held group by pgcombine_key) h
             where k.id = h.pgcombine_key
         )
         select count(*) from held', _plan.queue || '_quarantine', _columns)
    into _held;
    select count(*), count(distinct s.pgcombine_key) into updates, keys
    from pg_temp.pgcombine_search s where s.pgcombine_held is null;

    settled := _all and cardinality(_at_fault) = cardinality(suspects);
    if settled then
        perform pgcombine.end_pass(_plan, updates + _held, keys, changes);
    else
        _plan.more := true;
        for _plan.mask, _plan.slice, _held, _slice in
            select s.pgcombine_mask, s.pgcombine_slice, count(*), count(distinct s.pgcombine_key)
            from pg_temp.pgcombine_search s group by 1, 2
        loop
            perform pgcombine.end_pass(_plan, _held, _slice, 0);
            _plan.pass := _plan.pass + 1;
        end loop;
    end if;
    settled := settled and not _plan.more;
    if settled or updates > 0 or quarantined > 0 then
        perform pgcombine.forget_failure(_plan.queue, _plan.bucket, settled);
    end if;
    drop table pg_temp.pgcombine_search;
end
$$;
