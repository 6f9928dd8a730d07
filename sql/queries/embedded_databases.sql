-- The databases that the superuser who runs this owns, except PostgreSQL's own.
select d.datname
from pg_database d join pg_roles r on r.oid = d.datdba
where r.rolname = current_user and d.datallowconn and not d.datistemplate and d.datname <> 'postgres'
