-- pgcombine_internal.handoff_clean_up()
-- Cleans up after replayers, which call it every minute.
-- The function adds acknowledgements to the totals of their server, except for those that handoff_last and
-- handoff_status read. It makes the partitions of tokens for today and the next two days, and drops partitions older
-- than the retention and empty partitions of later days. It deletes retained writes and records of partial rebuilds
-- that are older than the retention. If it deletes a retained write, it flags for repair the servers whose state isn't
-- up. It truncates the table of retained writes if the table is empty but larger than a megabyte.
-- If the function doesn't get a table lock within 200 ms, it leaves that step to a later call. It keeps a partition on
-- which another object depends. It does nothing while another session cleans up, while this server is being rebuilt,
-- and before this server has a name.
-- Runs with its owner's rights, for workers.
-- Tables written: handoff_delivery, handoff_replica, handoff_token, handoff_partial, handoff_retained.
-- Errors: 42501 the caller lacks the right work.
create or replace function pgcombine_internal.handoff_clean_up()
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _since timestamptz;
    _anyone boolean; -- whether a deleted write was for a server that its writer didn't name; null: none was deleted
    _oldest text;
    _newest text;
    _partition name;
    _used boolean;
begin
    perform pgcombine_internal.require_right(null, 'work', pgcombine_internal.caller());
    _since := now() - (select s.retention from pgcombine.handoff_server s);
    _oldest := 'handoff_token_' || to_char(_since at time zone 'UTC', 'YYYYMMDD');
    _newest := 'handoff_token_' || to_char((now() + interval '2 days') at time zone 'UTC', 'YYYYMMDD');
    perform from pgcombine.handoff_server for update skip locked;
    if not found then
        return;
    end if;

    with free as (
        select r.name from pgcombine.handoff_replica r for no key update skip locked
    ), last as materialized (
        select l.destination, max(l.at) as at from pgcombine.handoff_delivery l
        where l.token <> '00000000-0000-0000-0000-000000000000' group by l.destination
    ), witnessed as materialized (
        select w.destination, w.queue, max(w.at) as at from pgcombine.handoff_delivery w
        where w.witness is not null group by w.destination, w.queue
    ), summed as (
        delete from pgcombine.handoff_delivery d
        using free
        where d.destination = free.name
          and (d.token = '00000000-0000-0000-0000-000000000000'
               or d.at < (select l.at from last l where l.destination = d.destination))
          and (d.witness is null
               or d.at < (select w.at from witnessed w where w.destination = d.destination and w.queue = d.queue)
                         - interval '10 seconds')
        returning d.destination, d.delivered, d.deduplicated
    ), totals as (
        select s.destination, sum(s.delivered) as delivered, sum(s.deduplicated) as deduplicated
        from summed s group by s.destination
    )
    update pgcombine.handoff_replica r
    set delivered = r.delivered + t.delivered, deduplicated = r.deduplicated + t.deduplicated
    from totals t where r.name = t.destination;

    delete from pgcombine.handoff_partial p where pgcombine_internal.handoff_time(p.token) < _since;
    with gone as (
        delete from pgcombine.handoff_retained k where pgcombine_internal.handoff_time(k.token) < _since
        returning k.coordinator
    )
    select bool_or(g.coordinator = '00000000-0000-0000-0000-000000000000') into _anyone from gone g;
    perform pgcombine_internal.handoff_require_repair(d.name, 'it was away for longer than writes are kept for it')
    from pgcombine.destination d where d.kind = 'server' and (d.state <> 'up' or _anyone) and _anyone is not null;

    begin
        perform set_config('lock_timeout', '200ms', true);
        if pg_table_size('pgcombine.handoff_retained') > 1048576
           and not exists (select from pgcombine.handoff_retained) then
            lock table pgcombine.handoff_retained in access exclusive mode;
            if not exists (select from pgcombine.handoff_retained) then
                truncate pgcombine.handoff_retained; -- reduces the size of the table, which the quota limits
            end if;
        end if;
    exception when lock_not_available then
        null;
    end;

    begin
        perform set_config('lock_timeout', '200ms', true);
        perform pgcombine_internal.handoff_partition((lpad(to_hex(m), 12, '0') || '7' || repeat('0', 19))::uuid)
        from generate_series(0, 2) d, lateral (select (extract(epoch from now()) * 1000)::bigint + d * 86400000) t (m);
    exception when lock_not_available then
        null;
    end;

    for _partition in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'pgcombine.handoff_token'::regclass and (c.relname < _oldest or c.relname > _newest)
    loop
        begin -- writers queue up behind this lock, so the function waits only briefly
            perform set_config('lock_timeout', '200ms', true);
            -- while the lock is held, no writer inserts a token into the partition
            execute format('lock table pgcombine.%I in share mode', _partition);
            execute format('select exists (select from pgcombine.%I)', _partition) into _used;
            if _partition < _oldest or not _used then
                execute format('drop table pgcombine.%I', _partition);
            end if;
        exception
            when dependent_objects_still_exist then null; -- for example, another role's view reads the partition
            when lock_not_available then return;
        end;
    end loop;
end
$$;
