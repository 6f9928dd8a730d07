-- pgcombine.parse_column(definition, role) → (name, type, combiner)
-- Reads one column definition of create_queue: 'word text' (role key), 'n bigint sum' (role value).
--   definition  name (maybe quoted), type as in create table, for values the combiner last
-- Errors: PC003 with the definition and what is wrong with it.
create or replace function pgcombine.parse_column(definition text, role text,
    out name text, out type text, out combiner text)
language plpgsql stable
as $$
declare
    _form constant text := case parse_column.role
        when 'key' then 'a key column is "name type", for example ''word text'''
        else 'a value column is "name type combiner", for example ''n bigint sum''' end;
    _match text[];
    _base regtype;
begin
    -- name: quoted, or folded to lower case as everywhere in SQL
    _match := regexp_match(btrim(definition), '^"((?:[^"]|"")+)"\s+(.+)$');
    if _match is not null then
        name := replace(_match[1], '""', '"');
    else
        _match := regexp_match(btrim(definition), '^([[:alpha:]_][[:alnum:]_$]*)\s+(.+)$');
        name := lower(_match[1]);
    end if;
    if _match is null then
        raise exception 'column definition % can''t be read', coalesce(quote_literal(definition), 'null')
            using errcode = 'PC003', hint = _form;
    end if;
    if octet_length(name) > 59 then
        raise exception 'column name "%" is longer than 59 bytes', name
            using errcode = 'PC003', hint = 'old_… and new_… are made of it';
    end if;
    if name in ('tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid') or name like 'pgcombine\_%' then
        raise exception 'column name "%" is reserved', name using errcode = 'PC003', hint = 'choose another name';
    end if;

    type := _match[2];
    if parse_column.role = 'value' then
        _match := regexp_match(type, '^(.*\S)\s+([^\s()]+)$');
        if _match is null then
            raise exception 'value column % has no combiner', quote_literal(definition)
                using errcode = 'PC003', hint = _form;
        end if;
        type := _match[1];
        combiner := lower(_match[2]);
        if not exists (select from pgcombine.combiner c where c.combiner = parse_column.combiner) then
            raise exception 'unknown combiner "%" in %', combiner, quote_literal(definition)
                using errcode = 'PC003', hint = (select 'combiners: ' || string_agg(c.combiner, ', ' order by c.combiner)
                                                 from pgcombine.combiner c);
        end if;
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

    if combiner is not null then
        perform pgcombine.check_combiner(combiner, name, type);
    end if;
end
$$;
