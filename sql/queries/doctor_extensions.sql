-- The extensions that are installed in the database, with their versions.
select extname as name, extversion as version from pg_extension order by extname
