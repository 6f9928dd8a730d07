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
    perform pgcombine_internal.require(not pg_is_in_recovery(), 'PC042',
        format('server "%s" is in recovery: it is a standby, not the server itself', name),
        'give the address of the primary');
    select s.* into _server from pgcombine.handoff_server s;
    if not found then
        perform pgcombine_internal.require(has_table_privilege('pgcombine.handoff_server', 'insert'), 'PC042',
            'this server hasn''t been named yet',
            format('let its owner name it: select pgcombine_internal.handoff_identify(%L)', name));
        insert into pgcombine.handoff_server (name, system_identifier)
        select handoff_handshake.name, c.system_identifier from pg_control_system() c
        on conflict do nothing;
        select s.* into strict _server from pgcombine.handoff_server s;
    end if;
    perform pgcombine_internal.require(_server.name = name, 'PC042',
        format('this server is "%s", not "%s"', _server.name, name),
        'check the address; pgcombine_internal.handoff_identify gives a server another name');
    perform pgcombine_internal.require(
        _server.system_identifier = (select c.system_identifier from pg_control_system() c), 'PC042',
        format('server "%s" is a copy: its data were made by another cluster', _server.name),
        'to use it instead of the original: select pgcombine_internal.handoff_identify(name), then rebuild it');
    id := _server.id;
    epoch := _server.epoch;
    retention := _server.retention;
    replay_rate := _server.replay_rate;
end
$$;
