-- pgcombine.lock_capacity() → bigint
-- How many objects the server is configured to lock at the same time, all sessions together. There is some memory
-- beyond that; who takes it leaves the others without locks.
create or replace function pgcombine.lock_capacity()
returns bigint
language sql stable
as $$
    select current_setting('max_locks_per_transaction')::bigint * pgcombine.lock_slots()
$$;
