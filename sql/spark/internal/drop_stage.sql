-- pgcombine_internal.drop_stage(number) → boolean
-- Drops a load's stage, the table spark_stage_<number>, unless a session uses it. Returns whether the stage is gone.
-- The stage also stays while another object depends on it, for example a view.
-- Runs with its owner's rights, for workers.
-- Errors: 42501 the caller lacks the right work.
create or replace function pgcombine_internal.drop_stage(number bigint)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _stage constant regclass := to_regclass(format('pgcombine.spark_stage_%s', number));
    _timeout constant text := current_setting('lock_timeout');
begin
    perform pgcombine_internal.require_right(null, 'work', pgcombine_internal.caller());
    if _stage is not null then
        execute format('lock table %s in access exclusive mode nowait', _stage);
        perform set_config('lock_timeout', '1s', true); -- drop table may wait for the locks of dependent objects
        execute format('drop table %s', _stage);
        perform set_config('lock_timeout', _timeout, true);
    end if;
    return true;
exception when lock_not_available or dependent_objects_still_exist then
    return false;
end
$$;
