-- pgcombine_internal.add_destination(kind, name [, down_after, backoff, longest_backoff])
-- Registers a destination in state up. If the destination exists, it keeps its state and gets the new settings.
--   kind             'export' or 'server'
--   down_after       number of failures in a row after which the destination is down instead of suspect
--   backoff          wait after the first failure, approximately; it doubles with each further failure
--   longest_backoff  upper bound of the wait
-- Tables written: pgcombine.destination_state.
-- Errors: PC003 an invalid kind, name or setting.
create or replace function pgcombine_internal.add_destination(kind text, name text, down_after integer default 5,
    backoff interval default '0.5 s', longest_backoff interval default '1 min')
returns void
language plpgsql
as $$
begin
    if coalesce(add_destination.kind not in ('export', 'server'), true)
        or coalesce(btrim(add_destination.name), '') = '' then
        raise exception 'invalid destination: kind %, name %', coalesce(quote_literal(add_destination.kind), 'null'),
            coalesce(quote_literal(add_destination.name), 'null')
            using errcode = 'PC003', hint = 'give the kind export or server, and a name that isn''t empty';
    end if;
    if coalesce(add_destination.down_after < 1 or add_destination.backoff <= '0'
        or add_destination.longest_backoff <= '0', true) then
        raise exception 'invalid settings of destination "%": down_after %, backoff %, longest_backoff %',
            add_destination.name,
            add_destination.down_after, add_destination.backoff, add_destination.longest_backoff
            using errcode = 'PC003', hint = 'give positive numbers and intervals';
    end if;
    insert into pgcombine.destination_state as d (kind, name, down_after, backoff, longest_backoff)
    values (add_destination.kind, add_destination.name, add_destination.down_after, add_destination.backoff,
            add_destination.longest_backoff)
    on conflict on constraint destination_state_pkey do update
    set down_after = excluded.down_after, backoff = excluded.backoff, longest_backoff = excluded.longest_backoff;
end
$$;
