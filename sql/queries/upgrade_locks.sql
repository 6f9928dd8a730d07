-- Locks the tables and views that every upgrade changes. The tables with updates or changes come last, since
-- passes and writers insert into them.
-- If the statement doesn't get all locks within a moment, it releases those that it got, pauses and tries again, so
-- that sessions that wait behind it go on. It gives up after lock_timeout. A moment is 50 to 800 ms, which is less than
-- the default of deadlock_timeout (a second).
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
                    -- this takes the lock and changes nothing; lock table would also lock the tables that the view
                    -- reads
                    when c.relkind = 'v' then format('alter view %s owner to %s', c.oid::regclass, c.relowner::regrole)
                    when c.relname ~ '_(updates|changes)$'
                        then format('lock table only %s in share row exclusive mode', c.oid::regclass)
                    else format('lock table only %s in access exclusive mode', c.oid::regclass) end
                from pg_class c
                where c.relnamespace = to_regnamespace('pgcombine') and not c.relispartition
                  and (c.relkind = 'v' or c.relkind in ('r', 'p')
                       and (c.relname = 'queue' or c.relname ~ '_(updates|changes)$'
                            or exists (select from pg_policy p where p.polrelid = c.oid)))
                order by c.relname ~ '_(updates|changes)$', c.relkind, c.relname
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
            when undefined_table then null; -- a queue or an export was dropped meanwhile
        end;
        perform pg_sleep(extract(epoch from _moment));
        _moment := least(_moment * 2, '800 ms');
    end loop;
    -- this lock_timeout is for later statements of the upgrade
    perform set_config('lock_timeout', (extract(epoch from least(_patience, '1 s')) * 1000)::integer::text, true);
end
$$
