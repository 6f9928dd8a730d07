-- The version of the collation with which the database was made, and its version now.
select datcollversion as made, pg_database_collation_actual_version(oid) as now
from pg_database
where datname = current_database()
