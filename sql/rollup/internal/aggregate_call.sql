-- pgcombine_internal.aggregate_call(source, expression, tree) → (aggregate, argument, argument_type, condition)
-- Splits a value column that is a single call of a built-in aggregate, as sum(tokens) FILTER (WHERE done), into its
-- parts. count(*) has no argument. aggregate is null if the column is anything else, has distinct or order by, or calls
-- an aggregate that has no states (see aggregate_states).
--   expression, tree  see parsed_expression
create or replace function pgcombine_internal.aggregate_call(source regclass, expression text, tree text,
    out aggregate text, out argument text, out argument_type regtype, out condition text)
language plpgsql
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _alias constant name := (select c.relname from pg_class c where c.oid = source);
    _split integer;
begin
    if tree !~ ':aggdistinct <>' or tree !~ ':aggorder <>' then
        return;
    end if;
    select p.proname into aggregate from pg_proc p
    where p.oid = (regexp_match(tree, ':targetList \(\{TARGETENTRY :expr \{AGGREF :aggfnoid (\d+) '))[1]::oid
      and p.pronamespace = 'pg_catalog'::regnamespace and p.proname in ('count', 'sum', 'avg', 'min', 'max', 'variance',
          'var_samp', 'var_pop', 'stddev', 'stddev_samp', 'stddev_pop');
    if not found then
        return;
    end if;
    argument_type := (regexp_match(tree, ':aggargtypes \(o (\d+)\)'))[1]::oid;
    argument := substr(expression, length(aggregate) + 2);
    if tree ~ ':aggfilter <>' then
        argument := left(argument, -1);
    else -- a string in the argument may also contain ') FILTER (WHERE ', so PostgreSQL parses each possible argument
        for _split in select s from generate_series(1, length(argument)) s
            where substr(argument, s, 15) = ') FILTER (WHERE' -- a space or a new line follows
        loop
            begin
                if left(argument, _split - 1) <> '*' then
                    execute format('create temporary view pgcombine_argument as select (%s) as argument from %s as %I',
                        left(argument, _split - 1), source, _alias);
                    drop view pg_temp.pgcombine_argument;
                end if;
                condition := left(substr(argument, _split + 16), -1);
                argument := left(argument, _split - 1);
                exit;
            exception when syntax_error then null;
            end;
        end loop;
    end if;
    if argument = '*' then
        aggregate := 'count(*)';
        argument := null;
    end if;
end
$$;
