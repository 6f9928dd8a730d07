-- pgcombine.take_slot(load, slots) → boolean
-- Takes one of so many slots of a load for this session, until it ends; false: others have them all.
create or replace function pgcombine.take_slot(load text, slots integer)
returns boolean
language plpgsql
as $$
begin
    for _slot in 1 .. slots loop
        if pg_try_advisory_lock(hashtextextended('pgcombine.slot.' || load || '.' || _slot, 0)) then
            return true;
        end if;
    end loop;
    return false;
end
$$;
