-- pgcombine_internal.load_values(queue, rows) → bigint
-- Loads values from JSON, between begin_initialize and end_initialize; returns their number. The function serves
-- clients that can't COPY into <queue>_values.
--   rows  a JSON array of objects: keys and values by column name. A value that is missing is null
-- Tables written: <queue>_values.
-- Errors: PC001 unknown queue; PC004 a key is null or too long, is given twice or has a value already, or a value
-- doesn't fit its column; PC014 begin_initialize wasn't called in this transaction.
create or replace function pgcombine_internal.load_values(queue text, rows jsonb)
returns bigint
language plpgsql
as $$
declare
    _loaded bigint;
    _detail text;
begin
    perform pgcombine_internal.require_queue(queue);
    execute pgcombine_internal.fill('insert into pgcombine.{values} ({columns}) select {columns} from '
        'jsonb_populate_recordset(null::pgcombine.{values}, $1)',
        jsonb_build_object('values', quote_ident(queue || '_values'),
            'columns', pgcombine_internal.column_list(queue))) using rows;
    get diagnostics _loaded = row_count;
    return _loaded;
exception
    when unique_violation then
        get stacked diagnostics _detail = pg_exception_detail;
        raise exception 'queue "%" can''t be initialized: a key is given twice, or has a value already: %',
            queue, _detail
            using errcode = 'PC004', hint = 'nothing was loaded; give each key once, and none that has a value';
    when integrity_constraint_violation or program_limit_exceeded or data_exception then
        raise exception 'queue "%" can''t be initialized: %', queue, sqlerrm
            using errcode = 'PC004', hint = 'nothing was loaded; give values that fit their columns';
end
$$;
