-- pgcombine_internal.tier_key(queue, source, key) → (definition, name, expression), a row for each key column
-- Checks the key expressions of a tier (see create_tier), and returns the definition of each key column for
-- create_queue, its name, and the expression with qualified names. PostgreSQL itself parses the expressions: a view
-- shows their names, types and collations. A generated column rejects what isn't immutable, subqueries, aggregates and
-- sets. The table and the view are rolled back.
--   queue   the tier; it needn't exist
--   source  the queue that feeds it
-- Errors: PC003 an expression doesn't work over the key columns of the source, or isn't immutable.
create or replace function pgcombine_internal.tier_key(queue text, source text, key text[],
    out definition text, out name text, out expression text)
returns setof record
language plpgsql
as $$
declare
    _table constant text := format('pgcombine.%I', '=' || md5(coalesce(queue, ''))); -- no queue has such a name
    _view constant text := format('pgcombine.%I', '=' || md5(coalesce(queue, '') || '='));
    _path constant text := current_setting('search_path');
    _style constant text := current_setting('intervalstyle');
    _definition text;
    _match text[];
    _type text;
    _definitions text[] := '{}';
    _names text[] := '{}';
    _expressions text[] := '{}';
begin
    begin
        execute format('create table %s (%s)', _table,
            pgcombine_internal.column_list(tier_key.source, 'key', '{name} {type}{collate}'));
        foreach _definition in array coalesce(tier_key.key, '{}') loop
            _match := coalesce(
                regexp_match(_definition, '^(.*\S)\s+(as\s+(?:"(?:[^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*))\s*$', 'i'),
                array[_definition, '']);
            execute format(E'create view %s as select (%s\n) %s from %s', _view, _match[1], _match[2], _table);
            perform set_config('search_path', 'pg_catalog, pg_temp', true); -- PostgreSQL qualifies all other names
            select a.attname, format_type(a.atttypid, a.atttypmod)
                || coalesce(' collate ' || nullif(a.attcollation, t.typcollation)::regcollation, '')
            into tier_key.name, _type
            from pg_attribute a join pg_type t on t.oid = a.atttypid
            where a.attrelid = _view::regclass and a.attnum = 1;
            perform set_config('search_path', _path, true);
            execute format(E'alter table %s add column pgcombine_key %s generated always as (%s\n) stored',
                _table, _type, _match[1]);
            perform set_config('search_path', 'pg_catalog, pg_temp', true), set_config('datestyle', 'ISO', true),
                set_config('intervalstyle', 'postgres', true); -- every session reads such constants alike
            select pg_get_expr(d.adbin, d.adrelid) into tier_key.expression
            from pg_attrdef d where d.adrelid = _table::regclass;
            perform set_config('search_path', _path, true), set_config('intervalstyle', _style, true);
            execute format('drop view %s', _view);
            execute format('alter table %s drop column pgcombine_key', _table);
            _definitions := _definitions || format('%I %s', tier_key.name, _type);
            _names := _names || tier_key.name;
            _expressions := _expressions || tier_key.expression;
        end loop;
        raise sqlstate 'PC099'; -- rolls the table back
    exception
        when sqlstate 'PC099' then
            null;
        when invalid_object_definition then
            raise exception 'key expression % of tier "%" can''t be used, since its result can vary: %',
                quote_literal(_definition), tier_key.queue, sqlerrm
                using errcode = 'PC003', hint = 'use immutable functions alone. A day of a timestamptz varies with the '
                    'session''s time zone, so name a zone: date_trunc(''day'', hour at time zone ''UTC'') as day';
        when syntax_error_or_access_rule_violation or data_exception or feature_not_supported
            or invalid_name or null_value_not_allowed then
            raise exception 'key expression % of tier "%" can''t be used: %', quote_nullable(_definition),
                tier_key.queue, sqlerrm
                using errcode = 'PC003', hint = format('give an expression over the key columns of queue "%s" (%s), '
                    'and its name: date_trunc(''day'', hour) as day', tier_key.source,
                    pgcombine_internal.column_list(tier_key.source, 'key'));
    end;
    return query select * from unnest(_definitions, _names, _expressions);
end
$$;
