-- pgcombine_internal.add_column(queue, role, definition, position)
-- Checks and records a column of a queue that is being created.
--   role, definition  see parse_column
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
    _column pgcombine.queue_column := pgcombine_internal.parse_column(add_column.role, definition);
    _base regtype;
begin
    perform pgcombine_internal.require(r.holds, 'PC003', r.problem, r.hint)
    from (values
        (_column.name is not null, format('column definition %s can''t be read',
            coalesce(quote_literal(definition), 'null')), _form),
        (octet_length(_column.name) <= 59, format('column name "%s" is longer than 59 bytes', _column.name),
            'old_… and new_… are made of it'),
        (_column.name not in ('tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid')
            and _column.name not like 'pgcombine\_%',
         format('column name "%s" is reserved', _column.name), 'choose another name'),
        (add_column.role = 'key' or _column.combiner is not null, format('value column %L has no combiner', definition),
            _form)) r (holds, problem, hint);

    -- to_regtype parses exactly one type name, so an accepted type is safe in DDL. Comments are refused: they would
    -- hide the text after the type.
    begin
        _base := case when _column.type !~ '--|/\*' then to_regtype(_column.type) end;
    exception when syntax_error or invalid_parameter_value or undefined_object or invalid_schema_name then
        null;
    end;
    perform pgcombine_internal.require(_base is not null, 'PC003',
        format('unknown type "%s" in column %L', _column.type, definition), _form);
    perform pgcombine_internal.require(not exists (select from pg_type t where t.oid = _base
        and t.typtype = 'p'), 'PC003',
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
        perform pgcombine_internal.require((_column.combiner in ('last', 'first')) = (_column.ordered_by is not null),
            'PC003',
            format('combiner "%s" of column "%s" takes %s', _column.combiner, _column.name,
                case when _column.ordered_by is null then 'the column that orders the updates' else 'no column' end),
            'for example ''status text last(at)'', ''at timestamptz max''');
        perform pgcombine_internal.check_combiner(_column.combiner, _column.name, _column.type);
    end if;
    perform pgcombine_internal.require(
        not exists (
            select from pgcombine.queue_column c
            where c.queue = add_column.queue
              and (c.name = _column.name or c.role = 'value' and _column.name in ('old_' || c.name, 'new_' || c.name)
                   or add_column.role = 'value' and c.name in ('old_' || _column.name, 'new_' || _column.name))),
        'PC003', format('column "%s" of queue "%s" is there twice (value columns appear as old_… and new_… in changes)',
            _column.name, add_column.queue),
        'give each column a name of its own');
    _column.queue := add_column.queue;
    _column.position := add_column.position;
    insert into pgcombine.queue_column select _column.*;
end
$$;
