-- pgcombine_internal.expand(template, a, b, type, order_position, collation) → text
-- Fills in the template of a combiner (see combiners/builtin.sql).
-- %1$s and %2$s are the operands, %3$s the type, %4$s the position of the column that orders, %5$s the schema of the
-- type, %6$s and %7$s the aggregates of its least and its greatest value, %8$s the type with its collation.
create or replace function pgcombine_internal.expand(template text, a text, b text, type text, order_position integer,
    "collation" text)
returns text
language sql stable
as $$
    select format(template, a, b, type, order_position,
        (select quote_ident(n.nspname) from pg_type t join pg_namespace n on n.oid = t.typnamespace
         where t.oid = pgcombine_internal.base_type(type::regtype)),
        case when template like '%\%6$s%' then pgcombine_internal.extreme_aggregate(type::regtype, 1) end,
        case when template like '%\%7$s%' then pgcombine_internal.extreme_aggregate(type::regtype, 5) end,
        concat_ws(' collate ', type, "collation"))
$$;
