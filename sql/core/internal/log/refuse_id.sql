-- pgcombine_internal.refuse_id() → boolean
-- Raises an error: an update must have the id of its own transaction. Without this function the message would only name
-- the constraint of the domain own_tx.
-- Errors: 23514.
create or replace function pgcombine_internal.refuse_id()
returns boolean
language plpgsql
as $$
begin
    raise check_violation using message = 'an update must have the id of its own transaction in pgcombine_tx',
        hint = 'leave the column pgcombine_tx out: insert into the key and value columns by name';
end
$$;
