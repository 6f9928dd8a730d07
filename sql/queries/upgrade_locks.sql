-- Locks the tables and views that an upgrade changes: first those that every role may read, then those that writers
-- write to.
-- If a lock isn't free, the statement waits for a moment, releases all locks and tries again. So sessions that wait
-- behind it, above all writers, wait for a second at most, even if another session holds a lock for long. PostgreSQL
-- looks for deadlocks only after a second (deadlock_timeout), so no writer is cancelled. Gives up after lock_timeout.
do $$
declare
    _patience constant interval := current_setting('lock_timeout');
    _until constant timestamptz := clock_timestamp() + _patience;
    _moment interval := '50 ms';
    _end timestamptz;
    _lock text;
begin
    loop
        begin
            _end := clock_timestamp() + _moment;
            for _lock in
                select case
                    -- takes the lock without changing the view; lock table would also lock the tables that it reads
                    when c.relkind = 'v' then format('alter view %s owner to %s', c.oid::regclass, c.relowner::regrole)
                    when c.relname ~ '_(updates|exports)$'
                        then format('lock table only %s in share row exclusive mode', c.oid::regclass)
                    else format('lock table only %s in access exclusive mode', c.oid::regclass) end
                from pg_class c
                where c.relnamespace = to_regnamespace('pgcombine') and not c.relispartition
                  and (c.relkind = 'v' or c.relkind in ('r', 'p')
                       and (c.relname = 'queue' or c.relname ~ '_(updates|exports)$'
                            or exists (select from pg_policy p where p.polrelid = c.oid)))
                order by c.relname ~ '_(updates|exports)$', c.relkind, c.relname
            loop
                perform set_config('lock_timeout',
                    greatest(1, (extract(epoch from _end - clock_timestamp()) * 1000)::integer)::text, true);
                execute _lock;
            end loop;
            exit;
        exception
            when lock_not_available then
                if clock_timestamp() >= _until then
                    raise;
                end if;
            when undefined_table then null; -- a queue was dropped meanwhile
        end;
        perform pg_sleep(extract(epoch from _moment));
        _moment := least(_moment * 2, '800 ms');
    end loop;
    -- limits the waits of the upgrade's later statements
    perform set_config('lock_timeout', (extract(epoch from least(_patience, '1 s')) * 1000)::integer::text, true);
end
$$
