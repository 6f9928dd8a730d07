-- call pgcombine_internal.begin_alone(name)
-- Begins a new transaction for a public procedure, in which each statement has its own snapshot.
-- Errors: PC003 (or 2D000) the procedure was called in a transaction.
create or replace procedure pgcombine_internal.begin_alone(name text)
language plpgsql
as $$
begin
    -- In a block with an exception clause a commit always fails. Only the message says whether the procedure was called
    -- in a transaction. If messages are translated, the commit below raises 2D000 instead.
    begin
        commit;
    exception when invalid_transaction_termination then
        if sqlerrm = 'invalid transaction termination' then
            raise exception '% can''t run in a transaction', begin_alone.name
                using errcode = 'PC003', hint = 'commit, then call it alone';
        end if;
    end;
    commit;
    -- under serializable the procedure would conflict with enqueues and passes
    set local transaction isolation level read committed;
end
$$;
