-- pgcombine_internal.handoff_handshake(name) → (id, epoch, retention, replay_rate)
-- Checks this server's name. Returns its random id, its epoch, which grows with each new id, and two settings of the
-- table handoff_server. Writers, readers and replayers call the function before they use a connection to a server. If
-- the server has no name yet, a caller who may insert into handoff_server gives it this name.
-- Raises an error if the server can't take writes: it is in recovery, or its identity comes from another cluster (a
-- restored dump, a copy). handoff_identify gives a copy a new identity.
-- Tables written: handoff_server, if the server has no name yet.
-- Errors: PC042 the server has another name or none, is in recovery, or is a copy.
create or replace function pgcombine_internal.handoff_handshake(name text, out id uuid, out epoch integer,
    out retention interval, out replay_rate integer)
language plpgsql
as $$
declare
    _server pgcombine.handoff_server;
begin
    if pg_is_in_recovery() then
        raise exception 'server "%" is in recovery: it is a standby, not the server itself', handoff_handshake.name
            using errcode = 'PC042', hint = 'give the address of the primary';
    end if;
    select s.* into _server from pgcombine.handoff_server s;
    if not found then
        if not has_table_privilege('pgcombine.handoff_server', 'insert') then
            raise exception 'this server hasn''t been named yet'
                using errcode = 'PC042',
                    hint = format('let its owner name it: select pgcombine_internal.handoff_identify(%L)',
                    handoff_handshake.name);
        end if;
        insert into pgcombine.handoff_server (name, system_identifier)
        select handoff_handshake.name, c.system_identifier from pg_control_system() c
        on conflict do nothing;
        select s.* into strict _server from pgcombine.handoff_server s;
    end if;
    if _server.name <> handoff_handshake.name then
        raise exception 'this server is "%", not "%"', _server.name, handoff_handshake.name
            using errcode = 'PC042',
                hint = 'check the address; pgcombine_internal.handoff_identify gives a server another name';
    end if;
    if _server.system_identifier <> (select c.system_identifier from pg_control_system() c) then
        raise exception 'server "%" is a copy: its data were made by another cluster', _server.name
            using errcode = 'PC042',
                hint = 'to use it instead of the original: select pgcombine_internal.handoff_identify(name), then '
                'rebuild it';
    end if;
    id := _server.id;
    epoch := _server.epoch;
    retention := _server.retention;
    replay_rate := _server.replay_rate;
end
$$;
