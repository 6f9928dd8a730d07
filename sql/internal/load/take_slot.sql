-- pgcombine_internal.take_slot(load, slots) → boolean
-- Takes one of a load's slots for the session, until it ends; returns false if other sessions have them all. Slots
-- limit the number of sessions that write for a load at the same time.
--   slots  their number
-- A slot is an advisory lock, which any role can take. A lock held by a session of another role doesn't count.
create or replace function pgcombine_internal.take_slot(load text, slots integer)
returns boolean
language plpgsql
as $$
declare
    _taken integer := 0;
    _slot integer := 0;
    _key bigint;
    _ours boolean;
begin
    while _taken < take_slot.slots loop
        _slot := _slot + 1;
        _key := hashtextextended('pgcombine.slot.' || take_slot.load || '.' || _slot, 0);
        loop
            if pg_try_advisory_lock(_key) then
                return true;
            end if;
            select coalesce(a.usesysid = me.usesysid, false) into _ours
            from pg_locks k
            join pg_database d on d.oid = k.database and d.datname = current_database()
            join pg_stat_activity me on me.pid = pg_backend_pid()
            left join pg_stat_activity a on a.pid = k.pid
            where k.locktype = 'advisory' and k.objsubid = 1 and k.granted
              and (k.classid::bigint << 32) | k.objid::bigint = _key;
            exit when found; -- not found: the slot was released just now, so try it again
        end loop;
        _taken := _taken + _ours::integer;
    end loop;
    return false;
end
$$;
