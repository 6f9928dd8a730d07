-- pgcombine_internal.export_existing(export)
-- Replaces the waiting entries by one entry for each key that has a value, without an old value.
-- Tables written: <export>_exports.
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.export_existing(export text)
returns void
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_existing.export);
    _table constant text := format('pgcombine.%I', _export.export || '_exports');
begin
    execute format('delete from %s', _table);
    execute pgcombine_internal.fill('insert into {exports} ({keys}, {news}) select {keys}, {columns} from '
        'pgcombine.{values}', jsonb_build_object(
        'exports', _table, 'keys', pgcombine_internal.column_list(_export.queue, 'key'),
        'news', pgcombine_internal.column_list(_export.queue, 'value', '{new}'),
        'columns', pgcombine_internal.column_list(_export.queue, 'value'),
        'values', quote_ident(_export.queue || '_values')));
end
$$;
