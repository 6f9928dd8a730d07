-- pgcombine_internal.handoff_verify_identity(name, id, epoch) → uuid
-- Checks, before a delivery, that a server is still the one that this coordinator knows. If the server's id is not
-- known here yet, or its epoch is later, the function stores id and epoch, provided that the caller may replay, and
-- returns null. Otherwise it returns the last token recorded for the server (handoff_last).
--   id, epoch  the server's answer to handoff_handshake
-- Tables written: handoff_replica.
-- Errors: PC042 the server has another id or an earlier epoch; PC045 the server isn't registered.
create or replace function pgcombine_internal.handoff_verify_identity(name text, id uuid, epoch integer)
returns uuid
language plpgsql
as $$
declare
    _replica record;
begin
    select r.id, r.epoch into _replica from pgcombine.handoff_replica r where r.name = handoff_verify_identity.name;
    perform pgcombine_internal.require(found, 'PC045', format('server "%s" is not registered here', name),
        format('pgcombine replicas add %s DSN', name));
    perform pgcombine_internal.require(coalesce(_replica.id = id and _replica.epoch <= epoch, true), 'PC042',
        format('server "%s" is not the server that was known by this name: %s', name,
            case when _replica.id <> id then 'it has another id' else 'it has an earlier epoch' end),
        format('check its address; if it replaces the former server: pgcombine replicas add %s DSN --new-identity',
            name));
    if _replica.id is null or _replica.epoch < epoch then
        if has_column_privilege('pgcombine.handoff_replica', 'epoch', 'update') then
            update pgcombine.handoff_replica r
            set id = handoff_verify_identity.id, epoch = handoff_verify_identity.epoch
            where r.name = handoff_verify_identity.name;
        end if;
        return null;
    end if;
    return pgcombine_internal.handoff_last(name);
end
$$;
