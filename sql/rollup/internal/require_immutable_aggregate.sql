-- pgcombine_internal.require_immutable_aggregate(expression, tree)
-- Raises an error unless the functions of a value column are immutable, and PostgreSQL's aggregates in it don't depend
-- on the order of rows. require_immutable can't check this by an index, since an index has no aggregates. So this
-- function looks up the functions in the parse tree.
-- PostgreSQL's aggregates to JSON aren't immutable, since they print times by the session's settings. They are accepted
-- for some types that have the same text in every session.
--   expression, tree  see parsed_expression
-- Errors: PC003 a function of the column isn't immutable, or its result depends on the order of the rows.
create or replace function pgcombine_internal.require_immutable_aggregate(expression text, tree text)
returns void
language sql stable
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
    with called (name, volatility, types, ordered) as (
        select p.proname, p.provolatile, array(select t[1]::oid from regexp_matches(a.part[2], '\d+', 'g') t),
               a.part[3] <> '<>' or a.part[4] <> '<>'
        from regexp_matches(tree, '\{AGGREF :aggfnoid (\d+) .*?:aggargtypes (<>|\(o [\d ]+\)) .*?'
            ':aggorder (\S+) .*?:aggdistinct (\S+) ', 'g') a (part)
        join pg_proc p on p.oid = a.part[1]::oid
        union all
        select p.proname, p.provolatile, null, true
        from (
            select m.oid[1]::oid from regexp_matches(tree, ':(?:funcid|opfuncid) (\d+)', 'g') m (oid)
            union all -- a cast by way of text calls the output function of one type and the input function of another
            select t.typoutput from regexp_matches(tree, '\{COERCEVIAIO :arg (?:\{\w+? :arg )*?\{\w+? '
                '[^{}]*?:(?!refcontainer|refelem)\w*?type (\d+?) ', 'g') m (oid)
            join pg_type t on t.oid = m.oid[1]::oid
            union all
            select t.typinput from regexp_matches(tree, ':resulttype (\d+) :resultcollid \d+ :coerceformat', 'g')
                m (oid) join pg_type t on t.oid = m.oid[1]::oid) f (oid)
        join pg_proc p on p.oid = f.oid
    )
    select pgcombine_internal.require(not c.session and not c.unordered, 'PC003', case
        when c.session then format('the value of %s can depend on the session', expression)
        else format('the value of %s depends on the order in which PostgreSQL reads the rows', expression) end, case
        when c.session then 'use only immutable functions, as an index does'
        else 'give the order: array_agg(x order by x)' end)
    from (
        select tree ~ '\{SQLVALUEFUNCTION ' or bool_or(c.volatility <> 'i' and not (c.name ~ '^jsonb?_' and c.types <@
                   '{boolean,smallint,integer,bigint,numeric,text,varchar,uuid,jsonb}'::regtype[]::oid[]) is true),
               bool_or(not c.ordered and c.name ~ '^(any_value|array_agg|string_agg|xmlagg|jsonb?_(object_)?agg.*)$')
        from called c) c (session, unordered)
$$;
