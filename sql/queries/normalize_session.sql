-- Gives a session of this program the settings that the program needs, whatever the server, the database, the role, the
-- environment or the connection string sets:
--   texts       UTF-8, and forms that lose nothing and that psycopg reads. Strings have the standard's syntax
--   time        no timeout, except for one that the client itself sets (in the connection string or PGOPTIONS, or
--               before), and a statement_timeout of the role
--   isolation   read committed. Under serializable, this program's statements would conflict with each other and make
--               other programs' statements fail
-- default_transaction_read_only stays, since it may stop all writes on purpose.
-- Behind a pooler a server's session would keep these settings for other clients: there the process id that the client
-- knows isn't that of the server's process. Then only those settings are made that a pooler restores for each client.
-- Parameter: the process id that the client knows.
select set_config(s.name, n.setting, false)
from (values ('client_encoding', 'UTF8', true, '{}'),
             ('DateStyle', 'ISO', true, '{}'), -- the order of day and month stays
             ('IntervalStyle', 'postgres', true, '{}'),
             ('standard_conforming_strings', 'on', true, '{}'),
             ('array_nulls', 'on', false, '{}'),
             ('bytea_output', 'hex', false, '{}'),
             ('extra_float_digits', '1', false, '{}'),
             ('lc_monetary', 'C', false, '{}'),
             ('quote_all_identifiers', 'off', false, '{}'),
             ('default_transaction_deferrable', 'off', false, '{}'),
             ('default_transaction_isolation', 'read committed', false, '{}'),
             ('idle_in_transaction_session_timeout', '0', false, '{client,session}'),
             ('idle_session_timeout', '0', false, '{client,session}'),
             ('statement_timeout', '0', false, '{client,session,user,database user}'),
             ('transaction_timeout', '0', false, '{client,session}') -- from PostgreSQL 17 on
     ) n (name, setting, restored, kept)
join pg_settings s on s.name = n.name and s.source <> all (n.kept::text[])
    and regexp_replace(s.setting, ',.*', '') <> n.setting
where n.restored or pg_backend_pid() = %s
