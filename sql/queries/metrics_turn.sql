-- Makes this session report the figures of the database until the session ends, unless another session reports them.
-- True: this session reports. False: another session does. Null: the role lacks the right monitor, so it doesn't see
-- the figures of all queues.
select case when pgcombine_internal.has_right('', 'monitor')
    then pg_try_advisory_lock(hashtext('pgcombine.metrics'), 0) end
