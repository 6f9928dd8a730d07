-- Attributes of the role: a superuser, sees other sessions, may make temporary tables.
select rolsuper, pg_has_role('pg_read_all_stats', 'usage'), has_database_privilege(current_database(), 'temporary')
from pg_roles where rolname = current_user
