-- pgcombine.handoff_tidy()
-- Upkeep, by replayers: adds up the acknowledgements but for the last of each server; makes the partitions of tokens of
-- today and of the two days to come; drops those that are older than the retention, and empty ones of later days (a
-- clock was wrong). No token is taken for more than a day ahead: so no writer makes a partition, which would keep all
-- others waiting until its transaction ends. What a transaction keeps from being done is left for the next time.
-- One does it at a time; who finds another at it goes.
-- Tables written: handoff_delivery, handoff_replica, handoff_token, handoff_partial.
-- Runs with its owner's rights, for who may delete hints. Errors: 42501 others.
create or replace function pgcombine.handoff_tidy()
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _oldest text;
    _newest text;
    _partition name;
    _used boolean;
begin
    if not pgcombine.may_replay() then
        raise exception 'permission denied: role "%" may not tidy up after replayers', pgcombine.caller()
            using errcode = '42501', hint = format('select pgcombine.grant_replay(%L)', pgcombine.caller());
    end if;
    _oldest := 'handoff_token_' || to_char((now() - (select s.retention from pgcombine.handoff_server s)) at time zone 'UTC', 'YYYYMMDD');
    _newest := 'handoff_token_' || to_char((now() + interval '2 days') at time zone 'UTC', 'YYYYMMDD');
    perform from pgcombine.handoff_server for update skip locked;
    if not found then
        return;
    end if;
    with free as (
        select r.name from pgcombine.handoff_replica r for no key update skip locked
    ), summed as (
        delete from pgcombine.handoff_delivery d
        using free, (select l.destination, max(l.at) as at from pgcombine.handoff_delivery l
               where l.token <> '00000000-0000-0000-0000-000000000000' group by l.destination) last
        where d.destination = free.name and d.destination = last.destination and d.at < last.at
        returning d.destination, d.delivered, d.deduplicated
    ), totals as (
        select s.destination, sum(s.delivered) as delivered, sum(s.deduplicated) as deduplicated from summed s group by s.destination
    )
    update pgcombine.handoff_replica r
    set delivered = r.delivered + t.delivered, deduplicated = r.deduplicated + t.deduplicated
    from totals t where r.name = t.destination;
    delete from pgcombine.handoff_partial p
    where pgcombine.handoff_time(p.token) < now() - (select s.retention from pgcombine.handoff_server s);
    begin
        perform set_config('lock_timeout', '200ms', true);
        perform pgcombine.handoff_partition((lpad(to_hex(m), 12, '0') || '7' || repeat('0', 19))::uuid)
        from generate_series(0, 2) d, lateral (select (extract(epoch from now()) * 1000)::bigint + d * 86400000) t (m);
    exception when lock_not_available then
        null;
    end;
    for _partition in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'pgcombine.handoff_token'::regclass and (c.relname < _oldest or c.relname > _newest)
    loop
        begin -- it locks out writers for a moment: not while a long transaction makes it wait
            perform set_config('lock_timeout', '200ms', true);
            execute format('lock table pgcombine.%I in share mode', _partition); -- empty, it stays so
            execute format('select exists (select from pgcombine.%I)', _partition) into _used;
            if _partition < _oldest or not _used then
                execute format('drop table pgcombine.%I', _partition);
            end if;
        exception when lock_not_available then
            return;
        end;
    end loop;
end
$$;
