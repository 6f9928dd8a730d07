-- pgcombine_internal.analyze_rollup(source, key, value, filter) → jsonb
-- Returns how a rollup of a table is kept:
--   alias     the name of a row of the table in the expressions
--   filter    the condition of the rows that count; null: all with a key that isn't null
--   keys      the key columns: name, type, collation, expression
--   states    the value columns of the queue: name, type, combiner, and plus, the aggregate that an inserted row adds
--             to it. kind tells what a deleted row adds: sum: −plus. extreme: nothing. taken: plus, which an inserted
--             row doesn't add, for the extreme that "of" names. computed: nothing, and neither do inserted rows
--   columns   the value columns of the rollup: name, type, and expression over the states
--   computed  what pass_template needs of computed columns, without the query; null: there are none
--   aggregates  name and expression of the computed columns
--   reads     the numbers of the table's columns that the expressions read, by name
-- count, sum, avg, variance and stddev of integers and numeric are additive: a deleted row takes back what it added.
-- Floating-point sums aren't, since rounding doesn't cancel out. A sum isn't enough: sum(x) is null without a value
-- that isn't null, and what infinity adds can't be taken back. So nulls, NaN and infinities are counted apart. These
-- counts are null while there are none.
-- min and max are kept with the extreme of deleted values. Only if that is the extreme of all, the extreme is computed.
-- Any other aggregate is computed by the pass, for the keys that have updates.
-- Errors: PC003 a column that doesn't parse, isn't immutable or isn't aggregated.
create or replace function pgcombine_internal.analyze_rollup(source regclass, key text[], value text[], filter text)
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
    _needs text[] := '{}';
    _names jsonb := '{}'; -- of the states, by kind, argument and filter
    _taken text[]; -- names of columns
    _checked text[] := '{}';
    _filter text;
    _match text[];
    _function text;
    _argument text;
    _argument_type oid;
    _additive boolean;
    _where text;
    _kinds text[];
    _kind text;
    _name text;
    _extreme text;
    _own jsonb; -- names of the states of one column, by kind
    _n text;
    _final text;
    _split integer;
    _reads jsonb := '{}';
begin
    perform pgcombine_internal.require(cardinality(key) > 0 and cardinality(value) > 0, 'PC003',
        'a rollup needs at least one key column and one value column',
        'key => array[''customer''], value => array[''count(*) as requests'']');
    if filter is not null then
        _e := pgcombine_internal.parsed_expression(source, format(E'(%s\n) as filter', filter));
        perform pgcombine_internal.require(_e.type = 'boolean' and _e.tree !~ '\{AGGREF |\{WINDOWFUNC ', 'PC003',
            format('the filter %s isn''t a condition of a row', filter),
            'for example filter => ''status = ''''done''''''');
        _filter := _e.expression;
        _reads := _e.reads;
        _checked := array[_filter];
    end if;
    foreach _given in array key loop
        _e := pgcombine_internal.parsed_expression(source, _given);
        perform pgcombine_internal.require(_e.tree !~ '\{AGGREF |\{WINDOWFUNC ', 'PC003',
            format('key column %s has an aggregate', quote_literal(_given)), 'name it in value');
        _checked := _checked || _e.expression;
        _reads := _reads || _e.reads;
        _keys := _keys || jsonb_build_object('name', _e.name, 'type', _e.type, 'collation', _e."collation",
            'expression', _e.expression);
        _taken := _taken || _e.name;
    end loop;

    create temporary table pgcombine_value on commit drop as
    select v.place, p.* from unnest(value) with ordinality v (given, place),
        pgcombine_internal.parsed_expression(source, v.given) p;
    _taken := _taken || array(select v.name from pg_temp.pgcombine_value v);
    -- the number of rows shows when a key goes. The first count(*) is that number
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
        _match := regexp_match(_e.tree, ':targetList \(\{TARGETENTRY :expr \{AGGREF :aggfnoid (\d+) ');
        perform pgcombine_internal.require(_e.tree ~ '\{AGGREF ', 'PC003',
            format('value column "%s" isn''t an aggregate', _e.name), 'name it in key, or aggregate it: max(…)');
        select p.proname into _function from pg_proc p
        where p.oid = _match[1]::oid and p.pronamespace = 'pg_catalog'::regnamespace
          and _e.tree ~ ':aggdistinct <>' and _e.tree ~ ':aggorder <>';
        _kinds := null;
        _argument := null;
        _where := null;
        if _function is not null then
            _argument_type := (regexp_match(_e.tree, ':aggargtypes \(o (\d+)\)'))[1];
            _argument := substr(_e.expression, length(_function) + 2);
            if _e.tree ~ ':aggfilter <>' then
                _argument := left(_argument, -1);
            else -- the words may also be in a string
                for _split in select s from generate_series(1, length(_argument)) s
                    where substr(_argument, s, 16) = ') FILTER (WHERE '
                loop
                    begin
                        execute format('select from (select %s) as e limit 0', case when _argument like '*)%' then ''
                            else format('(select (%s) from %s as %I limit 0)', left(_argument, _split - 1), source,
                                (select c.relname from pg_class c where c.oid = source)) end);
                        _where := left(substr(_argument, _split + 16), -1);
                        _argument := left(_argument, _split - 1);
                        exit;
                    exception when syntax_error then null;
                    end;
                end loop;
            end if;
            _additive := pgcombine_internal.base_type(coalesce(_argument_type, 'text'::regtype)) in (
                'smallint'::regtype, 'integer'::regtype, 'bigint'::regtype, 'numeric'::regtype);
            _kinds := case
                when _function = 'count' then case _argument when '*' then array['rows'] else array['count'] end
                when _function in ('min', 'max') then array[_function]
                when _additive and _function in ('sum', 'avg') then array['rows', 'nulls', 'sum']
                when _additive and _function in ('variance', 'var_samp', 'var_pop', 'stddev', 'stddev_samp',
                    'stddev_pop') then array['rows', 'nulls', 'sum', 'squares'] end;
            if _argument_type = 'numeric'::regtype and 'sum' = any (_kinds) then
                _kinds := _kinds || '{nans,infinities,negative_infinities}';
            end if;
        end if;
        if _kinds is null then
            perform pgcombine_internal.require(_e.tree !~ '\{SQLVALUEFUNCTION ' and not exists (
                select from (
                    select m.oid[1]::oid from regexp_matches(_e.tree, ':(?:funcid|opfuncid) (\d+)', 'g') m (oid)
                    union all -- casts by the text of a value
                    select t.typoutput from regexp_matches(_e.tree, '\{COERCEVIAIO :arg (?:\{\w+? :arg )*?\{\w+? '
                        '[^{}]*?:(?!refcontainer|refelem)\w*?type (\d+?) ', 'g') m (oid)
                    join pg_type t on t.oid = m.oid[1]::oid
                    union all
                    select t.typinput from regexp_matches(_e.tree, ':resulttype (\d+) :resultcollid \d+ :coerceformat',
                        'g') m (oid) join pg_type t on t.oid = m.oid[1]::oid) f (oid)
                join pg_proc p on p.oid = f.oid where p.provolatile <> 'i'), 'PC003',
                format('the value of %s can depend on the session', _e.expression),
                'use immutable functions alone, as an index does');
            _states := _states || jsonb_build_object('name', _e.name, 'type', _e.type, 'collation', _e."collation",
                'combiner', 'computed', 'kind', 'computed');
            _aggregates := _aggregates || jsonb_build_object('name', _e.name, 'expression', _e.expression);
            _columns := _columns || jsonb_build_object('name', _e.name, 'type', _e.type, 'expression',
                quote_ident(_e.name));
            continue;
        end if;
        _checked := _checked || array_remove(array[nullif(_argument, '*'), _where], null);
        _own := '{}';
        foreach _kind in array _kinds loop
            _n := jsonb_build_array(_kind, nullif(_argument, case when _kind = 'rows' then _argument else '' end),
                _where)::text;
            if not _names ? _n then
                _name := _e.name || case when _kind in (_function, 'rows') and (_kind <> 'rows' or _argument = '*')
                    then '' else '_' || _kind end;
                while _name <> _e.name and _name = any (_taken) loop
                    _name := _name || '_';
                end loop;
                _taken := _taken || _name;
                _names := _names || jsonb_build_object(_n, _name);
                _states := _states || jsonb_build_object('name', _name,
                    'type', case when _kind in ('min', 'max') then _e.type
                                 when _kind = 'squares' then 'numeric'
                                 when _kind = 'sum' and _argument_type in ('bigint'::regtype, 'numeric'::regtype)
                                     then 'numeric'
                                 else 'bigint' end,
                    'collation', case when _kind in ('min', 'max') then _e."collation" end,
                    'combiner', case when _kind in ('min', 'max') then _kind else 'sum' end,
                    'kind', case when _kind in ('min', 'max') then 'extreme' else 'sum' end,
                    'plus', pgcombine_internal.fill(case _kind
                        when 'rows' then 'count(*){filter}'
                        when 'count' then 'count({x}){filter}'
                        when 'min' then 'min({x}){filter}'
                        when 'max' then 'max({x}){filter}'
                        when 'sum' then 'coalesce(sum({x}){finite}, 0)'
                        when 'squares' then 'coalesce(sum(({x})::numeric * ({x})){finite}, 0)'
                        else 'nullif(count(*) filter (where {special}), 0)' end,
                        jsonb_build_object('x', _argument, 'filter', ' filter (where ' || _where || ')',
                            'finite', ' filter (where ' || nullif(concat_ws(' and ', '(' || _where || ')',
                                case when 'nans' = any (_kinds)
                                    then format('(%s) not in (''NaN'', ''Infinity'', ''-Infinity'')', _argument)
                                    end), '') || ')',
                            'special', concat_ws(' and ', '(' || _where || ')', format(case _kind
                                when 'nulls' then '(%s) is null'
                                when 'nans' then '(%s) = ''NaN'''
                                when 'infinities' then '(%s) = ''Infinity'''
                                else '(%s) = ''-Infinity''' end, _argument)))));
                if _kind in ('min', 'max') then
                    _extreme := _name;
                    _name := _name || '_taken';
                    while _name = any (_taken) loop
                        _name := _name || '_';
                    end loop;
                    _taken := _taken || _name;
                    _states := _states || ((_states -> -1) || jsonb_build_object('kind', 'taken', 'name', _name,
                        'of', _extreme));
                    _aggregates := _aggregates || jsonb_build_object('name', _extreme, 'expression', _e.expression);
                    _needs := _needs || format('u.%2$I is not null and u.%2$I = %3$s(u.%2$I, v.%1$I, u.%1$I)', _extreme,
                        _name, case _kind when 'min' then 'least' else 'greatest' end);
                end if;
            end if;
            _own := _own || jsonb_build_object(_kind, quote_ident(_names ->> _n));
        end loop;
        _final := pgcombine_internal.fill(case
            when _function = 'count' or _function in ('min', 'max') then '{' || _kinds[1] || '}'
            when _function = 'sum' then 'case{special} when {n} > 0 then {sum} end'
            when _function = 'avg' then 'case{special} when {n} > 0 then {sum}::numeric / {n} end'
            when _function in ('variance', 'var_samp') then 'case when {n} <= 1 then null{not_finite} else {samp} end'
            when _function = 'var_pop' then 'case{not_finite} when {n} > 0 then {pop} end'
            when _function in ('stddev', 'stddev_samp')
                then 'case when {n} <= 1 then null{not_finite} else round(sqrt({samp}), scale({samp})) end'
            else 'case{not_finite} when {n} > 0 then round(sqrt({pop}), scale({pop})) end' end,
            _own || jsonb_build_object('n', format('(%s - coalesce(%s, 0))', _own ->> 'rows', _own ->> 'nulls'),
                'special', case when 'nans' = any (_kinds) then format(
                    ' when coalesce(%1$s, 0) > 0 or coalesce(%2$s, 0) > 0 and coalesce(%3$s, 0) > 0 then ''NaN'''
                    ' when coalesce(%2$s, 0) > 0 then ''Infinity'' when coalesce(%3$s, 0) > 0 then ''-Infinity''',
                    _own ->> 'nans', _own ->> 'infinities', _own ->> 'negative_infinities') end,
                'not_finite', case when 'nans' = any (_kinds) then format(
                    ' when coalesce(%s, 0) + coalesce(%s, 0) + coalesce(%s, 0) > 0 then ''NaN''::numeric',
                    _own ->> 'nans', _own ->> 'infinities', _own ->> 'negative_infinities') end,
                'samp', format('(greatest(%1$s * %3$s - %2$s::numeric * %2$s, 0) / (%1$s * (%1$s::numeric - 1)))',
                    format('(%s - coalesce(%s, 0))', _own ->> 'rows', _own ->> 'nulls'), _own ->> 'sum',
                    _own ->> 'squares'),
                'pop', format('(greatest(%1$s * %3$s - %2$s::numeric * %2$s, 0) / (%1$s::numeric * %1$s))',
                    format('(%s - coalesce(%s, 0))', _own ->> 'rows', _own ->> 'nulls'), _own ->> 'sum',
                    _own ->> 'squares')));
        _columns := _columns || jsonb_build_object('name', _e.name, 'type', _e.type, 'expression', _final);
    end loop;
    drop table pg_temp.pgcombine_value;
    perform pgcombine_internal.require_immutable(source, _checked);

    return jsonb_build_object('alias', (select c.relname from pg_class c where c.oid = source), 'filter', _filter,
        'keys', _keys, 'states', _states, 'columns', _columns, 'reads', _reads, 'aggregates', _aggregates,
        'computed', case when _aggregates <> '[]' then jsonb_build_object(
            'columns', jsonb_path_query_array(_aggregates, '$[*].name'),
            'needs', case when not jsonb_path_exists(_states, '$[*] ? (@.kind == "computed")')
                then array_to_string(_needs, ' or ') end) end);
end
$$;
