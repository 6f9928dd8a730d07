-- pgcombine_internal.open_search(plan) → keys
-- First step of run_search: copies the updates of a planned pass into the temporary table pgcombine_search and numbers
-- their keys; returns the number of keys. Beside the queue's columns the table has
--   pgcombine_key    the number of the key, from 1
--   pgcombine_slice  the slice of the key's hash, by pgcombine_mask. The keys of a slice have consecutive numbers; the
--                    order of the slices differs in each search
--   pgcombine_held   the number of the key in quarantine; null: it isn't quarantined
-- The search is written to the journal by slices (see close_search), so they are small.
-- Errors: PC001 unknown queue; 42501 the caller may not make temporary tables.
create or replace function pgcombine_internal.open_search(plan pgcombine.plan)
returns integer
language plpgsql
as $$
declare
    _plan constant pgcombine.plan := open_search.plan;
    _slices constant bigint := coalesce(_plan.mask, 0) + 1;
    _mask constant bigint := greatest(_slices, least(1024, _slices * 2 ^ ceil(log(2, greatest(1, _plan.pending / 8.0)))::integer)) - 1;
begin
    perform pgcombine_internal.require(has_database_privilege(current_database(), 'temporary'), '42501',
        format('role "%s" may not create temporary tables in database "%s", but searches for keys at fault need them',
            current_user, current_database()),
        format('grant temporary on database %I to %I', current_database(), current_user));
    if to_regclass('pg_temp.pgcombine_search') is not null then -- left by another search in this transaction
        drop table pg_temp.pgcombine_search;
    end if;
    -- numbered by key as well as by hash: keys may share a hash if their type's hash function is poor
    execute pgcombine_internal.fill(
        'create temporary table pgcombine_search on commit drop as
         select {columns}, pgcombine_held, pgcombine_hash & {mask} as pgcombine_slice, {mask}::bigint as pgcombine_mask,
                (dense_rank() over (order by pgcombine_hash & {mask} # {order}, pgcombine_hash, {keys}))::integer as pgcombine_key
         from (select updates.*, {hash} as pgcombine_hash, pgcombine_held.pgcombine_key as pgcombine_held
               from {updates} left join pgcombine.{quarantine} as pgcombine_held on {held_key}) as updates',
        jsonb_build_object('columns', pgcombine_internal.column_list(_plan.queue), 'keys', pgcombine_internal.column_list(_plan.queue, 'key'),
            'mask', _mask, 'order', floor(random() * (_mask + 1))::bigint, 'hash', pgcombine_internal.key_hash(_plan.queue),
            'updates', pgcombine_internal.log_sql(_plan.queue, _plan.tables, _plan.condition),
            'quarantine', quote_ident(_plan.queue || '_quarantine_keys'), 'held_key', pgcombine_internal.held_key(_plan.queue)));
    create index on pg_temp.pgcombine_search (pgcombine_key);
    return (select coalesce(max(pgcombine_key), 0) from pg_temp.pgcombine_search);
end
$$;
