-- pgcombine_internal.handoff_holders(queue, keys, servers, replicas) → (number, holders)
-- Returns for each key the servers that hold it. Keys are numbered from 1, in the order given.
--   keys  the text of a text[] with one element for each key column. The element is the text of an array of that
--         column's values
create or replace function pgcombine_internal.handoff_holders(queue text, keys text, servers text[], replicas integer,
    out number integer, out holders text[])
returns setof record
language plpgsql
as $$
begin
    perform pgcombine_internal.portable_text();
    return query execute format('select number, pgcombine_internal.handoff_placement(slot, $2, $3) from (%s) s order '
        'by number',
        pgcombine_internal.handoff_slot_sql(queue)) using keys, servers, replicas;
end
$$;
