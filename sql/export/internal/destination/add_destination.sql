-- pgcombine_internal.add_destination(kind, name [, down_after, backoff, longest_backoff])
-- Registers a destination in state up. If the destination exists, it keeps its state and gets the new settings.
--   kind             'export' or 'server'
--   down_after       number of failures in a row after which the destination is down instead of suspect
--   backoff          wait after the first failure, approximately; it doubles with each further failure
--   longest_backoff  longest wait, approximately
-- Tables written: pgcombine.destination_state.
create or replace function pgcombine_internal.add_destination(kind text, name text, down_after integer default 5,
    backoff interval default '0.5 s', longest_backoff interval default '1 min')
returns void
language sql
as $$
    insert into pgcombine.destination_state (kind, name, down_after, backoff, longest_backoff)
    values (kind, name, down_after, backoff, longest_backoff)
    on conflict on constraint destination_state_pkey do update
    set down_after = excluded.down_after, backoff = excluded.backoff, longest_backoff = excluded.longest_backoff
$$;
