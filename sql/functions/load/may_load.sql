-- pgcombine.may_load() → boolean
-- Whether the current user may have one more load under way: spark_limit says how many. Those that have ended count
-- until they are removed. The search path is fixed, as in has_right.
create or replace function pgcombine.may_load()
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select count(*) from pgcombine.spark_load l where l.role = current_user)
         < (select s.loads from pgcombine.spark_limit s where s.role in (current_user, '') order by s.role desc limit 1);
end
$$;
