-- pgcombine_internal.handoff_identify(name) → uuid
-- Gives this server a new identity: this name, a new id, and the next epoch if it had an identity. Returns the id. A
-- copy of a server needs a new identity, whether it runs beside the original or replaces the original.
-- Tables written: handoff_server.
-- Errors: PC045 an invalid name.
create or replace function pgcombine_internal.handoff_identify(name text)
returns uuid
language plpgsql
as $$
declare
    _id uuid;
begin
    perform pgcombine_internal.require(name ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$', 'PC045',
        'invalid name of a server: ' || coalesce(quote_literal(name), 'null'),
        'give at most 63 letters, digits, _ . and -');
    insert into pgcombine.handoff_server as s (name, system_identifier)
    select handoff_identify.name, c.system_identifier from pg_control_system() c
    on conflict (one) do update
    set name = excluded.name, system_identifier = excluded.system_identifier, id = gen_random_uuid(),
        epoch = s.epoch + 1
    returning s.id into _id;
    return _id;
end
$$;
