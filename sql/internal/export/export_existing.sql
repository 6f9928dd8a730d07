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
    _keys constant text := pgcombine_internal.column_list(_export.queue, 'key');
begin
    execute format('delete from %s', _table);
    execute format('insert into %1$s (%2$s, %3$s) select %2$s, %4$s from pgcombine.%5$I', _table, _keys,
        pgcombine_internal.column_list(_export.queue, 'value', '%7$I'), pgcombine_internal.column_list(_export.queue, 'value'), _export.queue || '_values');
end
$$;
