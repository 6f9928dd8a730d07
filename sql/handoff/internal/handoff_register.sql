-- pgcombine_internal.handoff_register(name, dsn [, max_rows, max_bytes, when_full, adopt])
-- Registers another server that holds the same queues, or changes its registration.
-- If a queue has a topology that doesn't name the server, a new server is flagged for repair until it is rebuilt: it
-- may lack earlier writes.
-- Null for max_rows, max_bytes or when_full changes nothing. A new server then gets 10,000,000 updates, 4 GiB and
-- backpressure.
--   dsn                  the server's address: host, port, dbname, user. Passwords and TLS settings come from a
--                        password file or the replayer's environment (see handoff_check_address)
--   max_rows, max_bytes  quota of waiting updates and their bytes, approximately
--   when_full            backpressure: writes are refused at the quota; require_repair: writes are taken without a hint
--                        for the server, which is flagged for repair
--   adopt                whether to forget the server's identity, so that the next server at this address is accepted.
--                        If the former server took writes, the next one may lack them, so it is flagged for repair
-- Tables written: handoff_replica, handoff_server, handoff_delivery, destination_state.
-- Errors: PC045 an invalid name or that of this server, a dsn with a secret or a forbidden option, an invalid quota.
create or replace function pgcombine_internal.handoff_register(name text, dsn text, max_rows bigint default null,
    max_bytes bigint default null, when_full text default null, adopt boolean default false)
returns void
language plpgsql
as $$
declare
    _new constant boolean := not exists (select from pgcombine.handoff_replica r where r.name = handoff_register.name);
begin
    perform pgcombine_internal.require(name ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$', 'PC045',
        'invalid name of a server: ' || coalesce(quote_literal(name), 'null'),
        'give at most 63 letters, digits, _ . and -');
    perform pgcombine_internal.handoff_check_address(name, dsn);
    perform pgcombine_internal.require(
        coalesce(max_rows > 0 and max_bytes > 0 and when_full in ('backpressure', 'require_repair'), true),
        'PC045', format('invalid quota of server "%s": %s', name,
            concat_ws(', ', max_rows || ' updates', max_bytes || ' bytes', when_full)),
        'give positive numbers, and backpressure or require_repair');
    perform pgcombine_internal.require(
        not exists (select from pgcombine.handoff_server s where s.name = handoff_register.name),
        'PC045', format('"%s" is this server itself', handoff_register.name),
        'register the other servers here, and this server on each of them');
    update pgcombine.handoff_server s set removed = array_remove(s.removed, handoff_register.name)
    where handoff_register.name = any (s.removed);
    perform pgcombine_internal.add_destination('server', name, down_after => 3);
    insert into pgcombine.handoff_replica as r (name, dsn, max_rows, max_bytes, when_full)
    values (handoff_register.name, handoff_register.dsn, coalesce(handoff_register.max_rows, 10000000),
            coalesce(handoff_register.max_bytes, 4294967296), coalesce(handoff_register.when_full, 'backpressure'))
    on conflict on constraint handoff_replica_pkey do update
    set dsn = excluded.dsn, max_rows = coalesce(handoff_register.max_rows, r.max_rows),
        max_bytes = coalesce(handoff_register.max_bytes, r.max_bytes),
        when_full = coalesce(handoff_register.when_full, r.when_full), measured_at = '-infinity',
        id = case when not adopt then r.id end, epoch = case when not adopt then r.epoch end;
    if _new and exists (select from pgcombine.handoff_queue q where name <> all (q.servers)) then
        perform pgcombine_internal.handoff_require_repair(name,
            'it may lack the writes from before it was named (pgcombine replicas rebuild)');
    end if;

    if adopt then
        perform pgcombine_internal.handoff_forget(name);
        perform pgcombine_internal.handoff_require_repair(handoff_register.name, 'another server took its place')
        from pgcombine.handoff_replica r where r.name = handoff_register.name and r.delivered + r.deduplicated > 0;
    end if;
end
$$;
