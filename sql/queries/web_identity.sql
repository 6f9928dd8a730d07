-- The name of the database, the name of the role, and the server's version.
select current_database() as database, current_user as role, current_setting('server_version') as version
