-- pgcombine_internal.add_column(queue, role, definition, position)
-- Parses and records a column of a queue that is being created: 'word text' (role key), 'n bigint sum' (role value).
--   definition  the name (perhaps quoted), the type as in create table, perhaps a collation (word text collate "C").
--               For values the combiner comes last: a built-in one, or the perhaps qualified name of a function or an
--               aggregate; last(at) and first(at) name the column that orders them
-- Tables written: pgcombine.queue_column; combiner, at the first use of a function or an aggregate.
-- Errors: PC003 the definition is wrong; the message says why.
create or replace function pgcombine_internal.add_column(queue text, role text, definition text, "position" integer)
returns void
language plpgsql
as $$
declare
    _form constant text := case add_column.role
        when 'key' then 'a key column is "name type", for example ''word text'''
        else 'a value column is "name type combiner", for example ''n bigint sum''' end;
    _identifier constant text := '(?:"(?:[^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*)';
    _match text[] := regexp_match(btrim(definition), '^(' || _identifier || ')\s+(.+)$');
    _name text := pgcombine_internal.identifier(_match[1]);
    _type text := _match[2];
    _base regtype;
    _collation text;
    _combiner text;
    _ordered_by text;
begin
    perform pgcombine_internal.require(r.holds, 'PC003', r.problem, r.hint)
    from (values
        (_name is not null, format('column definition %s can''t be read', coalesce(quote_literal(definition), 'null')), _form),
        (octet_length(_name) <= 59, format('column name "%s" is longer than 59 bytes', _name), 'old_… and new_… are made of it'),
        (_name not in ('tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid') and _name not like 'pgcombine\_%',
         format('column name "%s" is reserved', _name), 'choose another name')) r (holds, problem, hint);
    if add_column.role = 'value' then
        _match := regexp_match(_type, format('^(.*\S)\s+(%1$s(?:\.%1$s)*)(?:\s*\(\s*(%1$s)\s*\))?$', _identifier));
        perform pgcombine_internal.require(_match is not null, 'PC003', format('value column %L has no combiner', definition), _form);
        _type := _match[1];
        _combiner := _match[2];
        _ordered_by := pgcombine_internal.identifier(_match[3]);
    end if;
    _match := regexp_match(_type, format('^(.*\S)\s+collate\s+(%1$s(?:\.%1$s)*)$', _identifier), 'i');
    if _match is not null then
        _type := _match[1];
        _collation := _match[2];
    end if;

    -- to_regtype parses exactly one type name, so an accepted type is safe in DDL. Comments are refused: they would hide
    -- the text after the type.
    begin
        _base := case when _type !~ '--|/\*' then to_regtype(_type) end;
    exception when syntax_error or invalid_parameter_value or undefined_object or invalid_schema_name then
        null;
    end;
    perform pgcombine_internal.require(_base is not null, 'PC003', format('unknown type "%s" in column %L', _type, definition), _form);
    perform pgcombine_internal.require(not exists (select from pg_type t where t.oid = _base and t.typtype = 'p'), 'PC003',
        format('type "%s" of column "%s" can''t be stored', _type, _name), 'choose a type that a table column can have');
    if _collation is not null then
        begin
            execute format('select null::%s collate %s', _type, _collation);
        exception when undefined_object or invalid_schema_name or datatype_mismatch then
            raise exception 'collation % of column "%" can''t be used: %', _collation, _name, sqlerrm
                using errcode = 'PC003', hint = 'select collname from pg_collation lists them';
        end;
    end if;
    if _combiner is not null then
        _combiner := pgcombine_internal.find_combiner(_combiner, _name, _type);
        perform pgcombine_internal.require((_combiner in ('last', 'first')) = (_ordered_by is not null), 'PC003',
            format('combiner "%s" of column "%s" takes %s', _combiner, _name,
                case when _ordered_by is null then 'the column that orders the updates' else 'no column' end),
            'for example ''status text last(at)'', ''at timestamptz max''');
        perform pgcombine_internal.check_combiner(_combiner, _name, _type);
    end if;
    perform pgcombine_internal.require(
        not exists (
            select from pgcombine.queue_column c
            where c.queue = add_column.queue
              and (c.name = _name or c.role = 'value' and _name in ('old_' || c.name, 'new_' || c.name)
                   or add_column.role = 'value' and c.name in ('old_' || _name, 'new_' || _name))),
        'PC003', format('column "%s" of queue "%s" is there twice (value columns appear as old_… and new_… in changes)', _name, add_column.queue),
        'give each column a name of its own');
    insert into pgcombine.queue_column (queue, position, role, name, type, "collation", combiner, ordered_by)
    values (add_column.queue, add_column.position, add_column.role, _name, _type, _collation, _combiner, _ordered_by);
end
$$;
