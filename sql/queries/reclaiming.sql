-- How reclaim works for this role: truncating; or deleting, if neither the role nor the owner of the schema has the
-- rights of pg_read_all_stats.
select case when bool_or(pg_has_role(r.name, 'pg_read_all_stats', 'usage')) then 'truncating' else 'deleting' end
from (select current_user union all
      select pg_get_userbyid(n.nspowner) from pg_namespace n where n.nspname = 'pgcombine') r (name)
