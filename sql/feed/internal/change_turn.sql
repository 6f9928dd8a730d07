-- pgcombine_internal.change_turn(log, offset) → jsonb
-- Returns the last sequences of the buckets before the first rebucket beyond an offset. Null: the changes beyond the
-- offset are all from the present buckets. A reader must read the changes of all buckets up to the rebucket before it
-- reads any later ones. Then it sees the changes of each key in order.
create or replace function pgcombine_internal.change_turn(log pgcombine.change_log, "offset" jsonb)
returns jsonb
language sql stable
as $$
    select t.turn
    from unnest((log).turns) with ordinality t (turn, place)
    where exists (select from jsonb_each_text(t.turn) e where e.value::bigint > ("offset" ->> e.key)::bigint)
    order by t.place limit 1
$$;
