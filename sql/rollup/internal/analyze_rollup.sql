-- pgcombine_internal.analyze_rollup(source, key, value, filter, keep) → jsonb
-- Returns how a rollup of a table is maintained:
--   alias     the name of a row of the table in the expressions
--   filter    the condition of the rows that count; null: all with a key that isn't null
--   keep      the condition of the rows that stay counted when they go (kept rows); null: none
--   keys      the key columns: name, type, collation, expression
--   states    the value columns of the queue: name, type, combiner, plus (an aggregate over rows) and kind, which tells
--             what changed rows add to the column:
--               sum       inserted rows add plus, deleted rows -plus, unless they are kept
--               kept      kept rows add plus when they go; "of" names the column of kind sum that has them, too
--               extreme   inserted rows add plus: their minimum or maximum. Kept rows add it again
--               taken     deleted rows add plus, unless they are kept. It leaves out values that are too long for the
--                         queue; "of" names the column of kind extreme for the same aggregate
--               computed  neither inserted nor deleted rows add anything: a pass computes the column
--   columns   the value columns of the rollup: name, type, and expression over the states
--   computed  what pass_template needs for the columns that passes compute, without the query; null: there are none.
--             get_rollup puts in the condition (needs)
--   aggregates  name and expression of the columns that passes compute
--   reads     the numbers of the table's columns that the expressions read, by name
--   texts     the expressions. Elsewhere {pgcombine_e1} stands for the first, and so on (see get_rollup)
-- Without distinct, count is additive, and so are sum, avg, variance and stddev of integers and numeric: a deleted row
-- takes back what it added. Floating-point sums aren't, since rounding doesn't cancel out. An additive column may need
-- several states (see aggregate_states).
-- A pass computes min and max from the source for keys whose extreme was deleted (taken). It computes every other
-- aggregate that isn't additive from the source for all keys that have updates. In a rollup with such an aggregate, it
-- also computes min and max for all these keys. A pass computes nothing for a key that has kept rows.
-- Errors: PC003 no key or value column, an expression that doesn't parse or isn't immutable, an aggregate in a key
-- column or a condition, a value column that has no aggregate or aggregates whole rows, a filter or keep that isn't
-- boolean, or a volatile function in keep.
create or replace function pgcombine_internal.analyze_rollup(source regclass, key text[], value text[], filter text,
    keep text)
returns jsonb
language plpgsql
as $$
declare
    _given text;
    _e record;
    _keys jsonb := '[]';
    _states jsonb := '[]';
    _columns jsonb := '[]';
    _aggregates jsonb := '[]';
    _names jsonb := '{}'; -- names of the states' columns, by state, argument and condition
    _taken text[]; -- column names in use
    _checked text[] := '{}';
    _conditions jsonb := '{}'; -- filter and keep
    _call record;
    _state record;
    _name text;
    _extreme text;
    _own jsonb; -- columns of one aggregate's states, by state
    _text text;
    _reads jsonb := '{}';
    _texts text[] := '{}';
    _n integer;
begin
    perform pgcombine_internal.require(cardinality(key) > 0 and cardinality(value) > 0, 'PC003',
        'a rollup needs at least one key column and one value column',
        'key => array[''customer''], value => array[''count(*) as requests'']');
    for _name, _given in
        select * from (values ('filter', filter), ('keep', keep)) c (option, condition) where c.condition is not null
    loop
        _e := pgcombine_internal.parsed_expression(source, format(E'(%s\n) as %s', _given, _name));
        perform pgcombine_internal.require(_e.type = 'boolean' and _e.tree !~ '[{]AGGREF ', 'PC003',
            format('the %s %s isn''t a condition of a row', _name, _given), case _name
                when 'filter' then 'for example filter => ''status = ''''done'''''''
                else 'for example keep => ''at < now() - interval ''''90 days''''''' end);
        _texts := _texts || _e.expression;
        _conditions := _conditions || jsonb_build_object(_name, format('{pgcombine_e%s}', cardinality(_texts)));
        _reads := _reads || _e.reads;
        if _name = 'filter' then
            _checked := _texts;
        else
            perform pgcombine_internal.require(not exists (
                select from regexp_matches(_e.tree, ':(?:op)?funcid ([0-9]+)', 'g') m
                join pg_proc p on p.oid = m[1]::oid and p.provolatile = 'v'), 'PC003',
                format('keep %s calls a volatile function', quote_literal(_given)), 'use now() for the time at which '
                'the transaction began; declare your own function stable if it is');
        end if;
    end loop;
    foreach _given in array key loop
        _e := pgcombine_internal.parsed_expression(source, _given);
        perform pgcombine_internal.require(_e.tree !~ '[{]AGGREF ', 'PC003',
            format('key column %s has an aggregate', quote_literal(_given)), 'name it in value');
        _checked := _checked || _e.expression;
        _reads := _reads || _e.reads;
        _texts := _texts || _e.expression;
        _keys := _keys || jsonb_build_object('name', _e.name, 'type', _e.type, 'collation', _e."collation",
            'expression', format('{pgcombine_e%s}', cardinality(_texts)));
        _taken := _taken || _e.name;
    end loop;

    create temporary table pgcombine_value on commit drop as
    select v.place, p.* from unnest(value) with ordinality v (given, place),
        pgcombine_internal.parsed_expression(source, v.given) p;
    _taken := _taken || array(select v.name from pg_temp.pgcombine_value v);
    -- A key without rows is deleted, so the queue counts rows. If the rollup has a column count(*), this is the count.
    select v.name into _name from pg_temp.pgcombine_value v where v.expression = 'count(*)'
    order by v.place limit 1;
    if not found then
        _name := 'row_count';
        while _name = any (_taken) loop
            _name := _name || '_';
        end loop;
        _taken := _taken || _name;
    end if;
    _names := jsonb_build_object('["rows", null, null]', _name);
    _states := _states || jsonb_build_object('name', _name, 'type', 'bigint', 'combiner', 'sum', 'kind', 'sum',
        'plus', 'count(*)');
    for _e in select * from pg_temp.pgcombine_value v order by v.place loop
        _reads := _reads || _e.reads;
        perform pgcombine_internal.require(_e.tree ~ '[{]AGGREF ', 'PC003',
            format('value column "%s" isn''t an aggregate', _e.name), 'name it in key, or aggregate it: max(…)');
        _call := pgcombine_internal.aggregate_call(source, _e.expression, _e.tree);
        perform pgcombine_internal.require(_call.argument_type is distinct from 'record'::regtype, 'PC003',
            format('value column "%s" aggregates rows', _e.name), 'aggregate one column, or a text of them');
        _own := '{}';
        _texts := _texts || _e.expression;
        _n := cardinality(_texts);
        for _state in
            select * from pgcombine_internal.aggregate_states(_call.aggregate,
                case when _call.argument is not null then format('{pgcombine_e%s}', _n + 1) end, _call.argument_type,
                case when _call.condition is not null then format('{pgcombine_e%s}', _n + 2) end)
        loop
            _text := jsonb_build_array(_state.state, case when _state.state <> 'rows' then _call.argument end,
                _call.condition)::text;
            if _state.kind = 'extreme' or not _names ? _text then -- the view shows an extreme under its own name
                _name := _e.name || case when _call.aggregate in (_state.state, 'count(*)') then ''
                    else '_' || _state.state end;
                while _name <> _e.name and _name = any (_taken) loop
                    _name := _name || '_';
                end loop;
                _taken := _taken || _name;
                _names := _names || jsonb_build_object(_text, _name);
                _states := _states || jsonb_build_object('name', _name, 'type', coalesce(_state.type, _e.type),
                    'collation', case when _state.kind = 'extreme' then _e."collation" end,
                    'combiner', case _state.kind when 'extreme' then _state.state else 'sum' end,
                    'kind', _state.kind, 'plus', _state.plus);
                if _state.kind = 'extreme' then
                    _extreme := _name;
                    _name := _name || '_taken';
                    while _name = any (_taken) loop
                        _name := _name || '_';
                    end loop;
                    _taken := _taken || _name;
                    _states := _states || ((_states -> -1) || jsonb_build_object('kind', 'taken', 'name', _name,
                        'of', _extreme, 'plus', format('%s({pgcombine_e%s}) filter (where %s)', _state.state, _n + 1,
                            coalesce(nullif(concat_ws(' and ',
                                case when _call.condition is not null then format('({pgcombine_e%s})', _n + 2) end,
                                pgcombine_internal.value_size(_e.type::regtype, format('{pgcombine_e%s}', _n + 1))
                                    || ' <= 1048576'), ''), 'true'))));
                    _aggregates := _aggregates || jsonb_build_object('name', _extreme, 'expression',
                        format('{pgcombine_e%s}', _n));
                end if;
            end if;
            _own := _own || jsonb_build_object(_state.state, quote_ident(_names ->> _text));
        end loop;
        if _own = '{}' then
            perform pgcombine_internal.require_immutable_aggregate(_e.expression, _e.tree);
            _states := _states || jsonb_build_object('name', _e.name, 'type', _e.type, 'collation', _e."collation",
                'combiner', 'computed', 'kind', 'computed');
            _own := jsonb_build_object('computed', quote_ident(_e.name));
            _aggregates := _aggregates || jsonb_build_object('name', _e.name, 'expression',
                format('{pgcombine_e%s}', _n));
        else
            _checked := _checked || array_remove(array[_call.argument, _call.condition], null);
            _texts := _texts || coalesce(_call.argument, 'null') || coalesce(_call.condition, 'null');
        end if;
        _columns := _columns || jsonb_build_object('name', _e.name, 'type', _e.type, 'expression',
            pgcombine_internal.aggregate_result(_call.aggregate, _own));
    end loop;
    drop table pg_temp.pgcombine_value;
    if keep is not null then
        for _e in select s.value as state from jsonb_array_elements(_states) s where s.value ->> 'kind' = 'sum' loop
            _name := (_e.state ->> 'name') || '_kept';
            while _name = any (_taken) loop
                _name := _name || '_';
            end loop;
            _taken := _taken || _name;
            _states := _states || (_e.state || jsonb_build_object('name', _name, 'kind', 'kept',
                'of', _e.state -> 'name'));
        end loop;
    end if;
    perform pgcombine_internal.require_immutable(source, _checked);

    return _conditions || jsonb_build_object('alias', (select c.relname from pg_class c where c.oid = source),
        'keys', _keys, 'states', _states, 'columns', _columns, 'reads', _reads, 'texts', _texts,
        'aggregates', _aggregates, 'computed', case when _aggregates <> '[]' then jsonb_build_object(
            'columns', jsonb_path_query_array(_aggregates, '$[*].name'),
            'needs', case when not jsonb_path_exists(_states, '$[*] ? (@.kind == "computed")') then '' end) end);
end
$$;
