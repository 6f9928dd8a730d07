-- pgcombine.export_existing(export)
-- Replaces what waits by an entry for each key that has a value, with no old one.
-- Tables written: <export>_exports.
-- Errors: PC021 unknown export.
create or replace function pgcombine.export_existing(export text)
returns void
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine.require_export(export_existing.export);
    _table constant text := format('pgcombine.%I', _export.export || '_exports');
    _keys text;
    _news text;
    _values text;
begin
    select string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'),
           string_agg(format('%I', 'new_' || c.name), ', ' order by c.position) filter (where c.role = 'value'),
           string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'value')
    into _keys, _news, _values
    from pgcombine.queue_column c where c.queue = _export.queue;
    execute format('delete from %s', _table);
    execute format('insert into %s (%s, %s) select %s, %s from pgcombine.%I',
        _table, _keys, _news, _keys, _values, _export.queue || '_values');
end
$$;
