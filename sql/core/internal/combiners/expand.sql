-- pgcombine_internal.expand(template, value, new, type [, order_position, collation]) → text
-- Fills in the template of a combiner (see combiners.sql).
--   value, new      operands: fold aggregates value; merge combines value (the old value) with new
--   order_position  the position of the column "at", for last(at) and first(at)
-- {least} and {greatest} are the aggregates that PostgreSQL or an extension has for the type (min, max), found by their
-- sort operator. For types without such aggregates the values are sorted.
create or replace function pgcombine_internal.expand(template text, value text, new text, type text,
    order_position integer default null, "collation" text default null)
returns text
language sql stable
as $$
    select pgcombine_internal.fill(template, jsonb_object_agg(e.name, coalesce((
            select format('%s.%I(%s)', p.pronamespace::regnamespace, p.proname, value)
            from pgcombine_internal.type_operator(t.oid, e.strategy) s
            join pg_aggregate a on a.aggsortop = s.operator
            join pg_proc p on p.oid = a.aggfnoid
            join pg_operator o on o.oid = s.operator
            where p.pronargs = 1 and p.proargtypes[0] = o.oprleft
            order by p.oid
            limit 1), format('pgcombine_internal.single(%s order by %1$s %s)', value, e.direction)))
        || jsonb_build_object('value', value, 'old', value, 'new', new, 'type', type, 'position', order_position,
            'schema', min(b.typnamespace::regnamespace::text), 'collated_type',
            concat_ws(' collate ', type, "collation")))
    from (values ('least', 1, 'asc'), ('greatest', 5, 'desc')) e (name, strategy, direction),
        pg_type t join pg_type b on b.oid = pgcombine_internal.base_type(t.oid)
    where t.oid = type::regtype
$$;
