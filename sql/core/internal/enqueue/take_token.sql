-- pgcombine_internal.take_token(queue, token) → boolean
-- Stores a token of a queue. Returns false if the queue has the token already: the same input was appended before. The
-- caller appends the input in the same transaction.
-- If another transaction that hasn't ended has stored the token, the call waits for its outcome. The insert has the
-- caller's rights, and a policy lets it pass (see grants.sql). The role needs no privilege to read tokens, since "on
-- conflict do nothing" names no columns.
-- Tables written: pgcombine.token.
-- Errors: PC001 unknown queue; PC004 the token is null, empty or too long; 42501 the caller lacks the right to enqueue;
-- 40001 above read committed: the token was committed after the caller's snapshot was taken.
create or replace function pgcombine_internal.take_token(queue text, token text)
returns boolean
language plpgsql
as $$
begin
    insert into pgcombine.token (queue, role, token)
    values (take_token.queue, '', pgcombine_internal.checked_token(take_token.queue, take_token.token))
    on conflict do nothing;
    return found;
end
$$;
