-- pgcombine.begin_values(load)
-- begin_initialize, for end_load: until the transaction ends no pass over the queue runs.
-- Runs with its owner's rights. That the load is one of values and is marked as ended, which its role alone can do, is
-- what allows it.
-- Errors: PC030 there is no such load; 42501 its role may not insert values; those of begin_initialize.
create or replace function pgcombine.begin_values(load uuid)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _load pgcombine.spark_load;
begin
    select l.* into _load from pgcombine.spark_load l
    where l.load = begin_values.load and l.kind = 'values' and l.ended_at is not null;
    if not found then
        raise exception 'there is no load % of values that ends', begin_values.load
            using errcode = 'PC030', hint = 'call pgcombine.end_load';
    end if;
    perform pgcombine.require_right(_load.queue, 'initialize', _load.role::name);
    perform pgcombine.begin_initialize(_load.queue);
end
$$;
