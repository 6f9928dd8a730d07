-- pgcombine_internal.prepare_load(load, attempts, expected)
-- Records the attempts of a load that succeeded and the number of rows that they wrote. Another session can then call
-- end_load without these arguments, in a transaction with other statements.
-- Tables written: pgcombine.spark_load.
-- Errors: PC030 the load has ended, or belongs to another role.
create or replace function pgcombine_internal.prepare_load(load uuid, attempts xid8[], expected bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    update pgcombine.spark_load l
    set attempts = prepare_load.attempts, expected = prepare_load.expected, seen_at = now()
    where l.load = prepare_load.load and l.ended_at is null;
    perform pgcombine_internal.require(found, 'PC030', format('the load %s has ended', load),
        'it was given up, or it belongs to another role: load again with the same run id');
end
$$;
