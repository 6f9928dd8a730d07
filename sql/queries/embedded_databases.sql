-- The databases that the current role owns, except postgres, templates, and databases that allow no connections.
select d.datname
from pg_database d join pg_roles r on r.oid = d.datdba
where r.rolname = current_user and d.datallowconn and not d.datistemplate and d.datname <> 'postgres'
