-- pgcombine_internal.require_immutable_aggregate(expression, tree)
-- Raises unless a value column gives the same result for the same rows in every session. require_immutable can't check
-- this by an index, since an index has no aggregates. So this function looks up the functions in the parse tree.
--   expression, tree  see parsed_expression
-- Errors: PC003 a function of the column isn't immutable.
create or replace function pgcombine_internal.require_immutable_aggregate(expression text, tree text)
returns void
language sql stable
as $$
    select pgcombine_internal.require(tree !~ '\{SQLVALUEFUNCTION ' and not exists (
        select from (
            select m.oid[1]::oid from regexp_matches(tree, ':(?:funcid|opfuncid) (\d+)', 'g') m (oid)
            union all -- casts by the text of a value
            select t.typoutput from regexp_matches(tree, '\{COERCEVIAIO :arg (?:\{\w+? :arg )*?\{\w+? '
                '[^{}]*?:(?!refcontainer|refelem)\w*?type (\d+?) ', 'g') m (oid)
            join pg_type t on t.oid = m.oid[1]::oid
            union all
            select t.typinput from regexp_matches(tree, ':resulttype (\d+) :resultcollid \d+ :coerceformat', 'g')
                m (oid) join pg_type t on t.oid = m.oid[1]::oid) f (oid)
        join pg_proc p on p.oid = f.oid where p.provolatile <> 'i'), 'PC003',
        format('the value of %s can depend on the session', expression),
        'use immutable functions alone, as an index does')
$$;
