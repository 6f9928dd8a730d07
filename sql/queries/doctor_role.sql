-- The role; whether it is a superuser, sees the sessions of all roles, and may make temporary tables.
select rolname as role, rolsuper as superuser, pg_has_role('pg_read_all_stats', 'usage') as sees,
       has_database_privilege(current_database(), 'temporary') as temporary
from pg_roles where rolname = current_user
