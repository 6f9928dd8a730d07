-- pgcombine.drop_stage(number) → boolean
-- Drops a load's stage unless somebody is at it: whether it is gone.
create or replace function pgcombine.drop_stage(number bigint)
returns boolean
language plpgsql
as $$
declare
    _stage constant regclass := to_regclass(format('pgcombine.spark_stage_%s', drop_stage.number));
begin
    if _stage is not null then
        execute format('lock table %s in access exclusive mode nowait', _stage);
        execute format('drop table %s', _stage);
    end if;
    return true;
exception when lock_not_available then
    return false;
end
$$;
