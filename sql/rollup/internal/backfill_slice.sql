-- pgcombine_internal.backfill_slice(rollup [, wait]) → boolean
-- Enqueues the updates that a rollup lacks in its next slice of keys (see rollup_difference). Returns whether slices
-- are left.
-- With slice_by, the first slices are the keys of about 200,000 rows each, from the greatest values of that column
-- down. Then slices of all keys by their hash follow. These also find rows with null in that column, and rows whose
-- value in it changed during the first slices.
--   wait  what to do if another session backfills the rollup: true waits for that session, false returns null
-- Runs with its owner's rights, since the expressions of a rollup are its owner's.
-- Tables written: pgcombine.rollup, <queue>_updates.
-- Errors: PC001 unknown queue; PC003 the queue isn't a rollup, or the isolation level isn't read committed; 42501 the
-- caller lacks the right work; those of require_source.
create or replace function pgcombine_internal.backfill_slice(rollup text, wait boolean default true)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO, MDY' -- the boundary is a text
set intervalstyle = 'postgres'
set timezone = 'UTC'
set bytea_output = 'hex'
set extra_float_digits = 1
set lc_monetary = 'C'
set standard_conforming_strings = on
set quote_all_identifiers = off
set row_security = off -- a policy of the source would run with this function's rights
as $$
declare
    _rollup pgcombine.rollup;
    _boundary text;
    _below text; -- the condition of rows that no slice has had yet
    _from text; -- the condition of the rows from the boundary %L on
    _among text;
    _relation text;
    _slice integer;
begin
    perform pgcombine_internal.require_right(rollup, 'work', pgcombine_internal.caller());
    perform pgcombine_internal.require(current_setting('transaction_isolation') = 'read committed', 'PC003',
        format('backfill of rollup "%s" needs isolation level read committed', rollup),
        'an older snapshot would enqueue what another session has enqueued already');
    _rollup := pgcombine_internal.get_rollup(rollup);
    perform pgcombine_internal.require(_rollup.queue is not null, 'PC003',
        format('queue "%s" isn''t a rollup', rollup),
        'select queue from pgcombine.rollup lists the rollups');
    perform pgcombine_internal.require_source(_rollup);

    -- an alter table that rewrites the source after the snapshots below would make it seem empty
    execute format('lock table pgcombine.%I in access share mode', _rollup.queue || '_source');
    if wait then
        select r.* into _rollup from pgcombine.rollup r where r.queue = backfill_slice.rollup for no key update;
    else
        select r.* into _rollup from pgcombine.rollup r where r.queue = backfill_slice.rollup
        for no key update skip locked;
    end if;
    if not found then -- another session backfills the rollup, or has just dropped it
        return null;
    end if;
    if _rollup.ready_at is not null then
        return false;
    end if;
    _rollup.definition := (pgcombine_internal.get_rollup(_rollup.queue)).definition;
    _relation := pgcombine_internal.rollup_relation(_rollup, _rollup.source::text);
    if _rollup.slice_by is not null and _rollup.done = 0 and _rollup.boundary is distinct from '' then
        select case when _rollup.boundary is null then 'true' else format('%I %s %L::%s', a.attname, less.name,
                   _rollup.boundary, t.type) end, format('%s %s %%L::%s', replace(quote_ident(a.attname), '%', '%%'),
                   least.name, t.type)
        into _below, _from
        from pg_attribute a
        cross join lateral pgcombine_internal.type_operator(a.atttypid, 1) less
        cross join lateral pgcombine_internal.type_operator(a.atttypid, 4) least
        cross join lateral pgcombine_internal.type_name(a.atttypid, a.atttypmod) t (type)
        where a.attrelid = format('pgcombine.%I', _rollup.queue || '_source')::regclass
            and a.attname = _rollup.slice_by;
        -- uuid and other types have an order but no min
        execute format('select x from pgcombine_internal.%I(%L) as pgcombine_owned (x text)', _rollup.queue || '_owned',
            format('select x::text from (select %1$I as x from %2$s where %1$I is not null and %3$s
                order by %1$I desc limit 200000) as pgcombine_slice order by pgcombine_slice.x limit 1',
                _rollup.slice_by, _relation, _below))
        into _boundary;
        if _boundary is not null then
            _among := format('select %s from %s where %s and %s',
                (select string_agg(format('%s as %I', k.value ->> 'expression', k.value ->> 'name'), ', '
                     order by k.place)
                 from jsonb_array_elements(_rollup.definition -> 'keys') with ordinality k (value, place)),
                _relation, format(_from, _boundary), _below);
        end if;
        _rollup.boundary := coalesce(_boundary, '');
    end if;

    if _among is null then
        if _rollup.done = 0 then
            select least(65536, power(2, greatest(0, ceil(log(2, greatest(1, sum(
                case when c.reltuples > 0 then c.reltuples else pg_relation_size(c.oid) / 100 end)::numeric / 1000000))
                ))))::integer
            into _rollup.slices
            from pgcombine_internal.descendants(_rollup.source) d join pg_class c on c.oid = d;
        end if;
        _slice := _rollup.done;
        _rollup.done := _rollup.done + 1;
    end if;

    -- again, with the parts that have come since: rollup_owned locks them only after the statement's snapshot
    execute format('lock table pgcombine.%I in access share mode', _rollup.queue || '_source');
    execute format('insert into pgcombine.%I (%s) %s', _rollup.queue || '_updates',
        pgcombine_internal.column_list(_rollup.queue), pgcombine_internal.rollup_difference(_rollup, _among,
            case when _slice is not null then _rollup.slices else 1 end, _slice));
    update pgcombine.rollup r
    set slices = _rollup.slices, done = _rollup.done, boundary = _rollup.boundary,
        ready_at = case when _rollup.done = _rollup.slices then now() end
    where r.queue = _rollup.queue;
    return _rollup.done < _rollup.slices;
end
$$;
