-- pgcombine_internal.may_load() → boolean
-- Returns whether the current user has fewer loads than its limit in pgcombine.spark_limit. Ended loads count until
-- they are removed. The search path is pinned since a policy calls the function on any role's search path.
create or replace function pgcombine_internal.may_load()
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select count(*) from pgcombine.spark_load l where l.role = current_user)
         < (select s.loads from pgcombine.spark_limit s where s.role in (current_user, '')
             order by s.role desc limit 1);
end
$$;
