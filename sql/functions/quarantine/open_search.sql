-- pgcombine.open_search(plan) → keys
-- Part of isolate: copies the updates of a planned pass into the temporary table pgcombine_search, key by key, beside the
-- queue's columns with
--   pgcombine_key    the number of the key, from 1 to keys
--   pgcombine_slice  the slice of the keys' hash that it is in, of pgcombine_mask. A slice's keys are numbered in a row, in
--                    another order of slices in each search
--   pgcombine_held   the number of the key in quarantine, null where it isn't
-- What was passed over is written down by slices (see close_search): so they are small.
create or replace function pgcombine.open_search(plan pgcombine.plan)
returns integer
language plpgsql
as $$
declare
    _plan constant pgcombine.plan := open_search.plan;
    _slices constant bigint := coalesce(_plan.mask, 0) + 1;
    _mask constant bigint := greatest(_slices, least(1024, _slices * 2 ^ ceil(log(2, greatest(1, _plan.pending / 8.0)))::integer)) - 1;
    _keys integer;
begin
    perform pgcombine.require_temporary();
    if to_regclass('pg_temp.pgcombine_search') is not null then -- of another search in this transaction
        drop table pg_temp.pgcombine_search;
    end if;
    -- keys, and not hashes alone: the hash function of a type may be poor
    execute (
        select format(
            'create temporary table pgcombine_search on commit drop as
             select %1$s, pgcombine_held, pgcombine_hash & %2$s as pgcombine_slice, %2$s::bigint as pgcombine_mask,
                    (dense_rank() over (order by pgcombine_hash & %2$s # %3$s, pgcombine_hash, %4$s))::integer as pgcombine_key
             from (select updates.*, %5$s as pgcombine_hash, %6$s as pgcombine_held from %7$s%8$s) as updates',
            string_agg(format('%I', c.name), ', ' order by c.position),
            _mask, floor(random() * (_mask + 1))::bigint,
            string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'),
            pgcombine.key_hash(_plan.queue),
            case when _plan.held then 'pgcombine_held.pgcombine_key' else 'null::bigint' end,
            pgcombine.log_sql(_plan.queue, _plan.tables, _plan.condition),
            case when _plan.held then format(' left join pgcombine.%I as pgcombine_held on %s', _plan.queue || '_quarantine_keys', pgcombine.held_key(_plan.queue))
                else '' end)
        from pgcombine.queue_column c where c.queue = _plan.queue);
    create index on pg_temp.pgcombine_search (pgcombine_key);
    select coalesce(max(pgcombine_key), 0) into _keys from pg_temp.pgcombine_search;
    return _keys;
end
$$;
