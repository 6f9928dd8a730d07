-- call pgcombine.backfill(rollup)
-- Adds the rows that a rollup's source had before the rollup was created, in slices, while writers go on. Workers do
-- the same on their own. If the call is interrupted, the next call goes on after the last committed slice.
-- It is a procedure, called outside of a transaction: it commits after each slice.
-- Tables written: those of backfill_slice.
-- Errors: PC003 (or 2D000) called in a transaction; those of backfill_slice.
create or replace procedure pgcombine.backfill(rollup text)
language plpgsql
as $$
begin
    call pgcombine_internal.begin_alone('backfill');
    while pgcombine_internal.backfill_slice(rollup) loop
        commit;
        set local transaction isolation level read committed;
    end loop;
    commit;
end
$$;
