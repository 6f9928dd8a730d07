-- pgcombine.adopt() → boolean
-- Adopts a database that was restored from a dump. The stored transaction ids mean nothing in it (see own_lineage), so
-- adopt appends pending updates again, with ids and marks of this database, and removes all other updates. Returns
-- false if there is nothing to do.
-- Until then enqueues and passes raise PC012. Workers call adopt when they start. One transaction does everything; of
-- several callers the others wait for the first.
-- Runs with its owner's rights, for roles that may run passes over some queue.
-- Tables written: <queue>_updates; pgcombine.pass, tick, lineage.
-- Errors: PC012 the restore isn't finished; PC003 the isolation level isn't read committed; 42501 the caller may not
-- run passes.
create or replace function pgcombine.adopt()
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue pgcombine.queue;
    _updates text;
    _columns text;
    _segment text;
    _limited boolean;
begin
    if not exists (select from pgcombine.queue q where pgcombine_internal.has_right(q.queue, 'work', pgcombine_internal.caller()))
       and exists (select from pgcombine.queue) then
        raise exception 'permission denied: % may not run passes over any queue', pgcombine_internal.caller()
            using errcode = '42501', hint = format('select pgcombine.grant_work(%L, ''*'')', pgcombine_internal.caller());
    end if;
    if pgcombine_internal.own_lineage() then
        return false;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then -- an older snapshot would miss another caller's adoption
        raise exception 'adopt needs isolation level read committed'
            using errcode = 'PC003', hint = 'begin transaction isolation level read committed';
    end if;
    lock table pgcombine.lineage in share row exclusive mode;
    if pgcombine_internal.own_lineage() then
        return false;
    end if;
    for _queue in select * from pgcombine.queue loop -- a restore makes triggers last
        if not exists (select from pg_trigger t
                       where t.tgrelid = to_regclass(format('pgcombine.%I', _queue.queue || '_updates')) and t.tgname = 'pgcombine_wake') then
            raise exception 'the restore of database "%" isn''t finished: pgcombine."%" has no trigger yet', current_database(), _queue.queue || '_updates'
                using errcode = 'PC012', hint = 'try again when it is; if it is, call pgcombine db upgrade';
        end if;
    end loop;
    delete from pgcombine.lineage;
    -- Two rows, written by two (sub)transactions. A restore writes both in one transaction. Its id may by chance be that of
    -- one row, but not of both.
    insert into pgcombine.lineage (id) values ('0');
    update pgcombine.lineage set id = xmin;
    begin
        insert into pgcombine.lineage (id) values ('0');
        update pgcombine.lineage set id = xmin where id = '0';
    exception when division_by_zero then null; -- the exception clause makes the block a subtransaction
    end;
    delete from pgcombine.tick;

    for _queue in select * from pgcombine.queue order by queue loop
        _updates := format('pgcombine.%I', _queue.queue || '_updates');
        _columns := pgcombine_internal.column_list(_queue.queue);
        execute format('create table pgcombine.%I as select %s from %s', _queue.queue || '_adopted', _columns,
            case when pgcombine_internal.portable_keys(_queue.queue) then format('pgcombine.%I', _queue.queue || '_pending')
                 else pgcombine_internal.log_sql(_queue.queue, array(
                     select t from generate_series(0, _queue.partitions - 1) p
                     cross join lateral unnest(pgcombine_internal.segment_tables(_queue.queue, p)) t), 'true') end);
        for _partition in 0 .. _queue.partitions - 1 loop
            foreach _segment in array pgcombine_internal.segment_tables(_queue.queue, _partition) loop
                if pg_relation_size(_segment::regclass) > 0 then
                    execute format('truncate %s', _segment);
                end if;
            end loop;
        end loop;
        _limited := exists (select from pg_trigger t where t.tgrelid = _updates::regclass and t.tgname = 'pgcombine_limit');
        if _limited then -- the updates were in the queue before, so they can't exceed its limit
            execute format('alter table %s disable trigger pgcombine_limit', _updates);
        end if;
        execute format('insert into %s (%s) select %s from pgcombine.%I', _updates, _columns, _columns, _queue.queue || '_adopted');
        if _limited then
            execute format('alter table %s enable trigger pgcombine_limit', _updates);
        end if;
        execute format('drop table pgcombine.%I', _queue.queue || '_adopted');
        -- In the new marks this transaction is in progress, so the updates that it has appended are pending.
        perform pgcombine_internal.mark_all(_queue.queue);
        delete from pgcombine.pass p
        using (select l.bucket, max(l.pass) as pass from pgcombine.pass l where l.queue = _queue.queue group by l.bucket) last
        where p.queue = _queue.queue and p.bucket = last.bucket and p.pass < last.pass;
    end loop;
    return true;
end
$$;
