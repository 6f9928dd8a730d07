-- The server, the database and this role each have a connection limit. Returns the limit of which the largest share is
-- in use: the number of connections that count, the limit, and its name. The last column is the number of workers'
-- sessions on the server. If PostgreSQL doesn't show this role the type of a session, the session counts toward the
-- server's limit if it has a role and a database.
select l.used, l.usable, l.limited_by,
       (select count(*) from pg_stat_activity a where a.application_name like 'pgcombine worker %') as workers
from (
    select (select count(*) from pg_stat_activity a
            where coalesce(a.backend_type = 'client backend', -- null: PostgreSQL doesn't show it to this role
                           a.usesysid is not null and a.datid is not null)) as used,
           current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
               - coalesce(current_setting('reserved_connections', true)::integer, 0) as usable,
                   'max_connections' as limited_by
    union all
    select (select count(*) from pg_stat_activity a where a.datname = d.datname), d.datconnlimit,
        'the database''s CONNECTION LIMIT'
    from pg_database d where d.datname = current_database() and d.datconnlimit >= 0
    union all
    select (select count(*) from pg_stat_activity a where a.usename = r.rolname), r.rolconnlimit,
        'the role''s CONNECTION LIMIT'
    from pg_roles r where r.rolname = current_user and r.rolconnlimit >= 0
) l
order by l.used::double precision / greatest(l.usable, 1) desc
limit 1
