-- The version of the database's default collation that PostgreSQL has recorded, and the version that is installed now.
select datcollversion as made, pg_database_collation_actual_version(oid) as now
from pg_database
where datname = current_database()
