-- pgcombine.verify_rollup(rollup [, repair]) → (problem)
-- Compares a rollup with its source. Returns rows for the keys that differ, and for reasons why the rollup may miss
-- changes. Writers go on meanwhile. If something that the rollup reads was dropped or renamed, or the source has a new
-- owner, the function returns reasons without comparing.
--   repair  whether to enqueue what the keys lack, too. The rows then say what was wrong
-- If the rollup keeps deleted rows, counts and sums must equal those of the source plus those that the triggers noted
-- for kept rows, which nothing proves any more. Of a key with kept rows, a minimum or maximum must cover the rows that
-- are left; other columns that passes compute aren't compared. For tables that were detached without event triggers,
-- repair notes the rows to keep.
-- Values of type real and double precision that passes compute may differ by a millionth.
-- Runs with its owner's rights, for workers, since the expressions of a rollup are its owner's.
-- Tables written: with repair, <rollup>_updates, pgcombine.rollup_part.
-- Errors: PC001 unknown queue; PC003 the queue isn't a rollup or isn't backfilled yet, or the isolation level isn't
-- read committed; 42501 the caller lacks the right work.
create or replace function pgcombine.verify_rollup(rollup text, repair boolean default false)
returns table (problem text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
set quote_all_identifiers = off
set row_security = off -- a policy of the source would run with this function's rights
as $$
declare
    _rollup pgcombine.rollup;
    _insert text;
    _fits text;
    _keep text;
    _kept text; -- the column that counts a key's kept rows
    _part regclass;
begin
    perform pgcombine_internal.require_right(rollup, 'work', pgcombine_internal.caller());
    _rollup := pgcombine_internal.get_rollup(rollup);
    perform pgcombine_internal.require(_rollup.queue is not null, 'PC003',
        format('queue "%s" isn''t a rollup', rollup), 'select queue from pgcombine.rollup lists the rollups');
    perform pgcombine_internal.require(_rollup.ready_at is not null, 'PC003',
        format('rollup "%s" isn''t backfilled yet', _rollup.queue),
        format('call pgcombine.backfill(%L)', _rollup.queue));
    perform pgcombine_internal.require(current_setting('transaction_isolation') = 'read committed', 'PC003',
        format('verification of rollup "%s" needs isolation level read committed', _rollup.queue),
        'an older snapshot doesn''t show what a truncated table held');
    return query select p.problem from pgcombine_internal.rollup_problems(_rollup.queue) p;
    if _rollup.definition is null or pgcombine_internal.rollup_outdated(_rollup) then -- the source can't be read
        return;
    end if;

    _keep := _rollup.definition ->> 'keep';
    select s ->> 'name' into _kept from jsonb_array_elements(_rollup.definition -> 'states') s
    where s ->> 'kind' = 'kept' and s ->> 'of' = _rollup.definition #>> '{states,0,name}';
    _insert := format('insert into pgcombine.%I (%s)', _rollup.queue || '_updates',
        pgcombine_internal.column_list(_rollup.queue));
    if repair then -- waits for another repair and for follow_ddl, which may enqueue the same
        perform from pgcombine.rollup r where r.queue = _rollup.queue for no key update;
        for _part in
            select c.oid from pgcombine.rollup_part p join pg_class c on c.oid = p.part
            where p.queue = _rollup.queue
              and p.part not in (select d from pgcombine_internal.descendants(_rollup.source) d)
        loop
            if _keep is not null then
                execute concat_ws(' ', _insert, pgcombine_internal.rollup_owned(_rollup, pgcombine_internal.rollup_rows(
                    _rollup, pgcombine_internal.rollup_relation(_rollup, 'only ' || _part), '^', '(' || _keep || ')')));
            end if;
            perform pgcombine_internal.forget_part(_rollup.queue, _part);
        end loop;
    end if;
    -- an alter table that rewrites the source after the snapshot below would make it seem empty
    execute format('lock table pgcombine.%I in access share mode', _rollup.queue || '_source');
    _fits := pgcombine_internal.rollup_fits(_rollup);
    if _fits is not null then
        return query execute format('select concat(n, $1) from pgcombine_internal.%I(%L) as pgcombine_owned (n bigint)
                where n > 0', _rollup.queue || '_owned',
            format('select count(*) from %s where %s', pgcombine_internal.rollup_relation(_rollup,
                _rollup.source::text), concat_ws(' and ', _rollup.definition ->> 'filter', format('not (%s)', _fits))))
        using format(' rows of %s don''t count, since their keys have more than 2600 bytes', _rollup.source);
    end if;

    if _rollup.definition #>> '{computed,columns}' is not null then
        -- first, since what repair enqueues below makes the view compute these columns from the source, and this would
        -- hide differences
        return query execute pgcombine_internal.fill('
            with pgcombine_differing as (
                select {shown}, concat_ws('', '', {sentences}) as pgcombine_sentence, {taken}
                from pgcombine.{current} as v join ({should}) as r on {same} cross join lateral (select {expected}) as s
                where ({differs}) -- the view computes touched keys from the source
                    and not exists (select from pgcombine.{pending} as t where ({touched}) and {touched_key})
            ), pgcombine_enqueued as (
                {insert} select {keys}, {touch} from pgcombine_differing {off})
            select format(''key %s: '', row({keys})) || pgcombine_sentence from pgcombine_differing',
            jsonb_build_object('keys', pgcombine_internal.column_list(_rollup.queue, 'key'),
                'shown', pgcombine_internal.column_list(_rollup.queue, 'key', 'v.{name}'),
                'same', pgcombine_internal.column_list(_rollup.queue, 'key', 'v.{name} {equals} r.{name}', ' and '),
                'current', quote_ident(_rollup.queue || '_current'),
                'pending', quote_ident(_rollup.queue || '_pending'),
                'touched_key',
                    pgcombine_internal.column_list(_rollup.queue, 'key', 'v.{name} {equals} t.{name}', ' and '),
                'insert', _insert,
                'off', case when not repair then 'where false' end,
                'touched', coalesce((
                    select string_agg(format('%I is not null', s ->> 'name'), ' or ')
                    from jsonb_array_elements(_rollup.definition -> 'states') s
                    where s ->> 'kind' = 'taken' and _rollup.definition #>> '{computed,needs}' is not null), 'true'),
                'should', pgcombine_internal.rollup_owned(_rollup, pgcombine_internal.rollup_computed(_rollup,
                    source => pgcombine_internal.rollup_relation(_rollup, _rollup.source::text)), array(
                    select k ->> 'name' from jsonb_array_elements(_rollup.definition -> 'keys') k
                    union all
                    select jsonb_array_elements_text(_rollup.definition #> '{computed,columns}'))))
            || (
                select jsonb_build_object(
                    'sentences', string_agg(format(
                        'case when %s then format(''%%s is %%s, not %%s'', %L, v.%I, s.%I) end', d.differs,
                        c.name, c.name, c.name), ', ' order by c.position),
                    'differs', string_agg(d.differs, ' or ' order by c.position),
                    'expected', string_agg(case when _kept is null then format('r.%1$I', c.name)
                        else format('case when coalesce(v.%1$I, 0) = 0 then r.%2$I else %3$s end as %2$I', _kept,
                            c.name, coalesce(format(e.extreme, c.name, 'r'), format('v.%I', c.name)))
                        end, ', ' order by c.position),
                    'taken', string_agg(format('%s as %I', coalesce(format(e.extreme, c.name, 's'), 'null'), c.name),
                        ', ' order by c.position))
                from pgcombine.queue_column c
                cross join lateral (select case c.combiner when 'max' then 'greatest(v.%1$I, %2$s.%1$I)'
                    when 'min' then 'least(v.%1$I, %2$s.%1$I)' end) e (extreme)
                cross join lateral (select case
                    when pgcombine_internal.base_type(c.type::regtype) in ('real'::regtype, 'double precision'::regtype)
                    then format('(v.%1$I is distinct from s.%1$I and not abs(v.%1$I - s.%1$I) <= '
                        '1e-6 * greatest(abs(v.%1$I), abs(s.%1$I), 1))', c.name)
                    else pgcombine_internal.differ_expression(c.type, format('v.%I', c.name),
                        format('s.%I::%s', c.name, c.type)) -- the type in s may be a domain
                    end) d (differs)
                where c.queue = _rollup.queue and _rollup.definition #> '{computed,columns}' ? c.name)
            || (
                select jsonb_build_object('touch', string_agg(case s.value ->> 'kind' when 'sum' then '0'
                    when 'taken' then quote_ident(s.value ->> 'of')
                    when 'extreme' then quote_ident(s.value ->> 'name') -- for a key that has kept rows
                    else 'null' end, ', ' order by s.place))
                from jsonb_array_elements(_rollup.definition -> 'states') with ordinality s (value, place)));
    end if;

    return query execute pgcombine_internal.fill('
        with pgcombine_missing as ({difference}), pgcombine_enqueued as ({insert} select * from pgcombine_missing {off})
        select format(''key %s: '', row({keys})) || concat_ws('', '', {deltas}) from pgcombine_missing',
        jsonb_build_object('difference', pgcombine_internal.rollup_difference(_rollup),
            'insert', _insert, 'off', case when not repair then 'where false' end,
            'keys', pgcombine_internal.column_list(_rollup.queue, 'key'),
            'deltas', (
                select string_agg(format('case when %1$I <> 0 then format(''%%s lacks %%s'', %1$L, %1$I) end',
                    s ->> 'name'), ', ')
                from jsonb_array_elements(_rollup.definition -> 'states') s where s ->> 'kind' = 'sum')));
end
$$;
