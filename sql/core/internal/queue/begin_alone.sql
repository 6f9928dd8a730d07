-- call pgcombine_internal.begin_alone(name)
-- Begins a read committed transaction for a public procedure. Each statement in this transaction has its own snapshot.
--   name  the procedure's name, for the error
-- Errors: PC003 (or 2D000) the procedure was called in a transaction.
create or replace procedure pgcombine_internal.begin_alone(name text)
language plpgsql
as $$
begin
    -- A commit in a block with an exception clause always fails. The error's message tells whether the procedure was
    -- called in a transaction. If the server translates messages, the commit below raises 2D000 instead.
    begin
        commit;
    exception when invalid_transaction_termination then
        if sqlerrm = 'invalid transaction termination' then
            raise exception '% can''t run in a transaction', name
                using errcode = 'PC003', hint = 'commit, then call it alone';
        end if;
    end;
    commit;
    -- under serializable the procedure would conflict with enqueues and passes
    set local transaction isolation level read committed;
end
$$;
