-- Makes this session report the figures of the database until the session ends, unless another session reports them.
-- Returns (turn, strangers).
--   turn       true: this session reports; false: another session has the lock; null: the role lacks the right monitor,
--              so it doesn't see the figures of all queues
--   strangers  who has the lock, if only sessions have it whose roles lack that right, and which so report no figures
select o.turn, (
    select string_agg(h.holder, ', ')
    from pgcombine_internal.lock_holders('pgcombine.metrics', 0) h
    where not o.turn
    having bool_and(coalesce(not pgcombine_internal.has_right(null, 'monitor', h.role), true)))
from (select case when pgcombine_internal.has_right(null, 'monitor')
          then pg_try_advisory_lock(hashtext('pgcombine.metrics'), 0) end as turn offset 0) o
