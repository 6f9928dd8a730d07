-- pgcombine_internal.expand(template, value, new, type [, order_position, collation]) → text
-- Fills in the template of a combiner (see combiners/builtin.sql).
--   value, new      operands: what fold aggregates, or the two that merge combines
--   order_position  the position of the column that orders, for last and first
create or replace function pgcombine_internal.expand(template text, value text, new text, type text,
    order_position integer default null,
    "collation" text default null)
returns text
language sql stable
as $$
    select pgcombine_internal.fill(template,
        jsonb_build_object('value', value, 'old', value, 'new', new, 'type', type, 'position', order_position,
        'schema', (select quote_ident(n.nspname) from pg_type t join pg_namespace n on n.oid = t.typnamespace
                   where t.oid = pgcombine_internal.base_type(type::regtype)),
        'least', case when strpos(template, '{least}') > 0
            then pgcombine_internal.extreme_aggregate(type::regtype, 1) end,
        'greatest', case when strpos(template, '{greatest}') > 0
            then pgcombine_internal.extreme_aggregate(type::regtype, 5) end,
        'collated_type', concat_ws(' collate ', type, "collation")))
$$;
