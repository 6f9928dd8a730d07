-- pgcombine_internal.await_tables(queue [, wholly])
-- Locks what lock_tables locks. Tries again until lock_timeout has passed, or without end if it is 0.
--   wholly  see lock_tables
-- Errors: PC006 the tables weren't free within lock_timeout.
create or replace function pgcombine_internal.await_tables(queue text, wholly boolean default true)
returns void
language plpgsql
as $$
declare
    _attempt integer := 0;
    _until constant timestamptz := (
        select case when s.setting = '0' then 'infinity'
            else clock_timestamp() + s.setting::bigint * interval '1 ms' end
        from pg_settings s where s.name = 'lock_timeout');
begin
    while not pgcombine_internal.lock_tables(queue, _attempt, wholly) loop
        _attempt := _attempt + 1;
        if clock_timestamp() > _until then
            raise exception 'the tables of queue "%" were in use all the time', queue using errcode = 'PC006',
                hint = 'nothing was changed; look for long transactions in pg_stat_activity, or set lock_timeout to a '
                    'longer time';
        end if;
    end loop;
end
$$;
