-- pgcombine.enqueue_once(queue, token, updates) → boolean
-- Appends updates in the caller's transaction unless an earlier call with the same token was committed, or was made in
-- this transaction. Returns whether this call appended them.
--   token    1 to 1024 bytes that name the input, such as the id of an event or of a message. A queue has one set of
--            tokens, which all roles share. Workers delete tokens that are older than the queue's token_retention, so
--            a retry must not come later
--   updates  as in enqueue. The call doesn't compare them with the updates of an earlier call
-- Of two calls with the same token at the same time, the second waits until the first one's transaction ends. The
-- second call appends its updates if that transaction rolls back. Two transactions that take the same tokens in
-- different orders can deadlock (40P01), so take them in order, or commit after each.
-- Tables written: <queue>_updates, pgcombine.token; or those of a component (see enqueue).
-- Errors: PC001 unknown queue; PC004 the token is null, empty or too long, and those of enqueue; 42501 the caller lacks
-- the right to enqueue; 40001 above read committed: the token was committed after the caller's snapshot was taken, so
-- run the transaction again.
create or replace function pgcombine.enqueue_once(queue text, token text, updates jsonb)
returns boolean
language plpgsql
as $$
begin
    if not exists (select from pgcombine.queue q where q.queue = enqueue_once.queue) then
        return pgcombine_internal.enqueue_elsewhere(queue, coalesce(token, ''), updates) > 0;
    end if;
    if not pgcombine_internal.take_token(queue, token) then
        return false;
    end if;
    perform pgcombine.enqueue(queue, updates);
    return true;
end
$$;
