-- pgcombine.parse_column(definition, role) → (name, type, collation, combiner, ordered_by)
-- Reads one column definition of create_queue: 'word text' (role key), 'n bigint sum' (role value).
--   definition  name (maybe quoted), type as in create table, maybe a collation (word text collate "C"), for
--               values the combiner last: a built-in one, or a function or an aggregate by its maybe qualified
--               name; last(at) and first(at) name the column that orders them
-- Returns collation null where none is given; ordered_by null but for last and first.
-- Tables written: pgcombine.combiner, when a function or an aggregate is used for the first time.
-- Errors: PC003 with the definition and what is wrong with it.
create or replace function pgcombine.parse_column(definition text, role text,
    out name text, out type text, out "collation" text, out combiner text, out ordered_by text)
language plpgsql
as $$
declare
    _form constant text := case parse_column.role
        when 'key' then 'a key column is "name type", for example ''word text'''
        else 'a value column is "name type combiner", for example ''n bigint sum''' end;
    _identifier constant text := '(?:"(?:[^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*)';
    _match text[];
    _base regtype;
begin
    _match := regexp_match(btrim(definition), '^(' || _identifier || ')\s+(.+)$');
    if _match is null then
        raise exception 'column definition % can''t be read', coalesce(quote_literal(definition), 'null')
            using errcode = 'PC003', hint = _form;
    end if;
    name := pgcombine.identifier(_match[1]);
    if octet_length(name) > 59 then
        raise exception 'column name "%" is longer than 59 bytes', name
            using errcode = 'PC003', hint = 'old_… and new_… are made of it';
    end if;
    if name in ('tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid') or name like 'pgcombine\_%' then
        raise exception 'column name "%" is reserved', name using errcode = 'PC003', hint = 'choose another name';
    end if;

    type := _match[2];
    if parse_column.role = 'value' then
        _match := regexp_match(type, format('^(.*\S)\s+(%1$s(?:\.%1$s)*)(?:\s*\(\s*(%1$s)\s*\))?$', _identifier));
        if _match is null then
            raise exception 'value column % has no combiner', quote_literal(definition)
                using errcode = 'PC003', hint = _form;
        end if;
        type := _match[1];
        combiner := _match[2];
        ordered_by := pgcombine.identifier(_match[3]);
    end if;
    _match := regexp_match(type, format('^(.*\S)\s+collate\s+(%1$s(?:\.%1$s)*)$', _identifier), 'i');
    if _match is not null then
        type := _match[1];
        "collation" := _match[2];
    end if;

    -- to_regtype parses exactly one type name: what passes is safe to put into DDL, but for a comment, which
    -- would hide what follows it there
    begin
        _base := case when type !~ '--|/\*' then to_regtype(type) end;
    exception when syntax_error or invalid_parameter_value or undefined_object or invalid_schema_name then
        _base := null;
    end;
    if _base is null then
        raise exception 'unknown type "%" in column %', type, quote_literal(definition)
            using errcode = 'PC003', hint = _form;
    end if;
    if exists (select from pg_type t where t.oid = _base and t.typtype = 'p') then
        raise exception 'type "%" of column "%" can''t be stored', type, name
            using errcode = 'PC003', hint = 'choose a type that a table column can have';
    end if;
    if "collation" is not null then
        begin
            execute format('select null::%s collate %s', type, "collation");
        exception when undefined_object or invalid_schema_name or datatype_mismatch then
            raise exception 'collation % of column "%" can''t be used: %', "collation", name, sqlerrm
                using errcode = 'PC003', hint = 'select collname from pg_collation lists them';
        end;
    end if;

    if combiner is not null then
        combiner := pgcombine.find_combiner(combiner, name, type);
        if (combiner in ('last', 'first')) <> (ordered_by is not null) then
            raise exception 'combiner "%" of column "%" takes %', combiner, name,
                case when ordered_by is null then 'the column that orders the updates' else 'no column' end
                using errcode = 'PC003', hint = 'for example ''status text last(at)'', ''at timestamptz max''';
        end if;
        perform pgcombine.check_combiner(combiner, name, type);
    end if;
end
$$;
