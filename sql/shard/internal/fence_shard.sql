-- pgcombine_internal.fence_shard(queue, tables)
-- Makes the named tables of a shard's queue refuse inserts, and the others accept them again. The fence stays if the
-- program that moves the shard dies. Waits for the transactions that have written to a table whose trigger it makes or
-- disables.
--   tables  updates, values or both; empty: neither refuses inserts
-- Errors: PC001 unknown queue; 55P03 the lock_timeout is over.
create or replace function pgcombine_internal.fence_shard(queue text, tables text[])
returns void
language plpgsql
as $$
declare
    _name text;
begin
    perform pgcombine_internal.require_queue(queue);
    foreach _name in array array['updates', 'values'] loop
        if _name = any (tables) then
            execute format('create or replace trigger pgcombine_moved before insert on pgcombine.%I
                for each statement execute function pgcombine_internal.refuse_moved(%L)',
                queue || '_' || _name, queue);
        elsif exists (select from pg_trigger t where t.tgname = 'pgcombine_moved'
                      and t.tgrelid = to_regclass(format('pgcombine.%I', fence_shard.queue || '_' || _name))) then
            -- unlike "drop trigger" this doesn't wait for readers
            execute format('alter table only pgcombine.%I disable trigger pgcombine_moved', queue || '_' || _name);
        end if;
    end loop;
end
$$;
