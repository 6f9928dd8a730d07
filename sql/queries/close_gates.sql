-- Takes the idle locks of tables; returns each table with the result of take_idle_lock. Parameter: the tables.
select gate, pgcombine_internal.take_idle_lock(gate) from unnest(%s::oid[]) gate
