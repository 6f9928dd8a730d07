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
begin
    perform pgcombine.require_temporary();
    if to_regclass('pg_temp.pgcombine_search') is not null then -- of another search in this transaction
        drop table pg_temp.pgcombine_search;
    end if;
    -- keys, and not hashes alone: the hash function of a type may be poor
    execute pgcombine.fill(
        'create temporary table pgcombine_search on commit drop as
         select {columns}, pgcombine_held, pgcombine_hash & {mask} as pgcombine_slice, {mask}::bigint as pgcombine_mask,
                (dense_rank() over (order by pgcombine_hash & {mask} # {order}, pgcombine_hash, {keys}))::integer as pgcombine_key
         from (select updates.*, {hash} as pgcombine_hash, pgcombine_held.pgcombine_key as pgcombine_held
               from {updates} left join pgcombine.{quarantine} as pgcombine_held on {held_key}) as updates',
        jsonb_build_object('columns', pgcombine.column_list(_plan.queue), 'keys', pgcombine.column_list(_plan.queue, 'key'),
            'mask', _mask, 'order', floor(random() * (_mask + 1))::bigint, 'hash', pgcombine.key_hash(_plan.queue),
            'updates', pgcombine.log_sql(_plan.queue, _plan.tables, _plan.condition),
            'quarantine', quote_ident(_plan.queue || '_quarantine_keys'), 'held_key', pgcombine.held_key(_plan.queue)));
    create index on pg_temp.pgcombine_search (pgcombine_key);
    return (select coalesce(max(pgcombine_key), 0) from pg_temp.pgcombine_search);
end
$$;
