-- The extensions of the database.
select extname as name, extversion as version from pg_extension order by extname
