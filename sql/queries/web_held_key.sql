-- A quarantined key by its number.
select id, key, updates, attempts, sqlstate, error, since from pgcombine.quarantine where queue = %s and id = %s
