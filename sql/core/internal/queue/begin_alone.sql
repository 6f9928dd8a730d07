-- call pgcombine_internal.begin_alone(name)
-- Begins a transaction of its own for a public procedure. Each look then has its own snapshot.
-- Errors: PC003 (or 2D000) the procedure was called in a transaction.
create or replace procedure pgcombine_internal.begin_alone(name text)
language plpgsql
as $$
begin
    -- In a block with an exception clause a commit always fails; only its message says whether it was called in a
    -- transaction. If messages are translated, the commit below raises 2D000 instead.
    begin
        commit;
    exception when invalid_transaction_termination then
        perform pgcombine_internal.require(sqlerrm <> 'invalid transaction termination', 'PC003',
            format('%s can''t run in a transaction', begin_alone.name), 'commit, then call it alone');
    end;
    commit;
    -- under serializable the looks would conflict with enqueues and passes
    set local transaction isolation level read committed;
end
$$;
