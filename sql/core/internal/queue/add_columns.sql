-- pgcombine_internal.add_columns(queue, key, value)
-- Parses, checks and records the columns of a queue that is being created: 'word text' for a key, 'n bigint sum' for a
-- value.
-- A definition is the name, quoted where SQL needs it; the type as in CREATE TABLE; and optionally a collation (word
-- text collate "C"). The definition of a value ends with the combiner: a built-in one, or the name of a function or an
-- aggregate. last(at) and first(at) name the column that orders the updates.
-- Tables written: pgcombine.queue_column; combiner, at the first use of a function or an aggregate.
-- Errors: PC003 there is no key column or no value column, or a definition is wrong.
create or replace function pgcombine_internal.add_columns(queue text, key text[], value text[])
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _identifier constant text := '(?:"(?:[^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*)';
    _qualified constant text := format('%s(?:\.%s)*', _identifier, _identifier);
    _role text;
    _definition text;
    _position integer;
    _form text;
    _match text[];
    _column pgcombine.queue_column;
    _base regtype;
begin
    perform pgcombine_internal.require(cardinality(key) > 0 and cardinality(value) > 0, 'PC003',
        format('queue "%s" needs at least one key column and one value column', queue),
        'key => array[''word text''], value => array[''n bigint sum'']');
    for _role, _definition, _position in
        select case when d.place <= cardinality(key) then 'key' else 'value' end, d.definition, d.place - 1
        from unnest(key || value) with ordinality d (definition, place)
    loop
        _form := case _role
            when 'key' then 'a key column is "name type", for example ''word text'''
            else 'a value column is "name type combiner", for example ''n bigint sum''' end;
        _column := null;
        _base := null;
        _match := regexp_match(btrim(_definition), format('^(%s)\s+(.+)$', _identifier));
        _column.role := _role;
        _column.name := (parse_ident(_match[1]))[1];
        _column.type := _match[2];
        if _role = 'value' then
            _match := regexp_match(_column.type, format('^(.*\S)\s+(%s)(?:\s*\(\s*(%s)\s*\))?$', _qualified,
                _identifier));
            _column.type := _match[1];
            _column.combiner := _match[2];
            _column.ordered_by := (parse_ident(_match[3]))[1];
        end if;
        _match := regexp_match(_column.type, format('^(.*\S)\s+collate\s+(%s)$', _qualified), 'i');
        if _match is not null then
            _column.type := _match[1];
            _column.collation := _match[2];
        end if;

        perform pgcombine_internal.require(r.holds, 'PC003', r.problem, r.hint)
        from (values
            (_column.name is not null,
             format('column definition %s can''t be read', coalesce(quote_literal(_definition), 'null')), _form),
            (octet_length(_column.name) <= 59, format('column name "%s" is longer than 59 bytes', _column.name),
             'the names old_… and new_… are made from it'),
            (_column.name not in ('tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid')
                and _column.name not like 'pgcombine\_%',
             format('column name "%s" is reserved', _column.name), 'choose another name'),
            (_role = 'key' or _column.combiner is not null, format('value column %L has no combiner', _definition),
             _form)) r (holds, problem, hint);

        -- to_regtype parses exactly one type name, so an accepted type is safe in DDL. Comments are refused: they would
        -- hide the text after the type.
        begin
            _base := case when _column.type !~ '--|/\*' then to_regtype(_column.type) end;
        exception when syntax_error or invalid_parameter_value or numeric_value_out_of_range or undefined_object
            or invalid_schema_name then
            null;
        end;
        perform pgcombine_internal.require(_base is not null, 'PC003',
            format('unknown type "%s" in column %L', _column.type, _definition), _form);
        perform pgcombine_internal.require(
            not exists (select from pg_type t where t.oid = _base and t.typtype = 'p'), 'PC003',
            format('type "%s" of column "%s" can''t be stored', _column.type, _column.name),
            'choose a type that a table column can have');
        if _column.collation is not null then
            begin
                execute format('select null::%s collate %s', _column.type, _column.collation);
            exception when undefined_object or invalid_schema_name or datatype_mismatch then
                raise exception 'collation % of column "%" can''t be used: %', _column.collation, _column.name, sqlerrm
                    using errcode = 'PC003', hint = 'select collname from pg_collation lists them';
            end;
        end if;
        if _column.combiner is not null then
            _column.combiner := pgcombine_internal.find_combiner(_column.combiner, _column.name, _column.type);
            perform pgcombine_internal.require(
                (_column.combiner in ('last', 'first')) = (_column.ordered_by is not null), 'PC003',
                format('combiner "%s" of column "%s" takes %s', _column.combiner, _column.name, case
                    when _column.ordered_by is null then 'the column that orders the updates' else 'no column' end),
                'for example ''status text last(at)'', ''at timestamptz max''');
            perform pgcombine_internal.check_combiner(_column.combiner, _column.name, _column.type);
        end if;
        perform pgcombine_internal.require(
            not exists (
                select from pgcombine.queue_column c
                where c.queue = add_columns.queue
                  and (c.name = _column.name
                       or c.role = 'value' and _column.name in ('old_' || c.name, 'new_' || c.name)
                       or _role = 'value' and c.name in ('old_' || _column.name, 'new_' || _column.name))),
            'PC003', format('column "%s" of queue "%s" appears twice (value columns appear as old_… and new_… in '
                'changes)',
                _column.name, add_columns.queue),
            'give each column another name');
        _column.queue := queue;
        _column.position := _position;
        insert into pgcombine.queue_column select _column.*;
    end loop;

    perform pgcombine_internal.require(o.combiner = w.wanted, 'PC003',
        format('%s(%s) of column "%s" needs a value column "%s" with combiner %s, but the column %s',
            c.combiner, c.ordered_by, c.name, c.ordered_by, w.wanted,
            coalesce('has combiner ' || o.combiner, 'isn''t there')),
        format('for example ''%s timestamptz %s''', c.ordered_by, w.wanted))
    from pgcombine.queue_column c
    cross join lateral (select case c.combiner when 'last' then 'max' else 'min' end) w (wanted)
    left join pgcombine.queue_column o on o.queue = c.queue and o.name = c.ordered_by
    where c.queue = add_columns.queue and c.ordered_by is not null;
end
$$;
