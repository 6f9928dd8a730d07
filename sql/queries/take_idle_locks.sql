-- Tries to take the idle locks of tables. Returns each table with the result of take_idle_lock. Parameter: the tables.
select relation, pgcombine_internal.take_idle_lock(relation) from unnest(%s::oid[]) relation
