-- pgcombine_internal.export_verify(export) → (page, look, target_page, compare)
-- Returns the statements that compare the table of the exporter postgres with the queue's values:
--   page         returns the next keys with a value, at most 1000, as JSON, after a key ($1; null: from the beginning)
--   look         returns for each key of a JSON array ($1) the key, its row as the table should have it, and whether
--                the table may differ for now: an entry of the key waits ($2: whether to look for entries), a full
--                state is being delivered, or the key has no value and a sweep is still to be done (export_sweep)
--   target_page  runs in the other database. Returns its next keys as page does: those that aren't deleted, and
--                those with a sequence beyond a number ($2)
--   compare      runs in the other database. Compares rows that look returned (a JSON array, $1), and returns those
--                that differ: the number of the row in the array, the difference, and the sequence in the table. The
--                difference is missing, surplus, other (another value) or ahead (a sequence beyond $2). A value that a
--                column's type can't hold exactly differs, too
-- The order of keys may differ between the two databases, so page and target_page each use their database's order.
-- Errors: PC021 unknown export; PC003 the exporter isn't postgres; PC045 another server delivers the export; 42501 the
-- caller lacks the right work.
create or replace function pgcombine_internal.export_verify(export text, out page text, out look text,
    out target_page text, out compare text)
language plpgsql stable
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_verify.export);
    _queue constant text := _export.queue;
    _parts constant jsonb := jsonb_build_object(
        'values', format('pgcombine.%I', _queue || '_values'),
        'entries', format('pgcombine.%I', _export.export || '_exports'),
        'target', pgcombine_internal.target_name(_export.export), 'export', quote_literal(_export.export),
        'keys', pgcombine_internal.column_list(_queue, 'key'),
        'looked', pgcombine_internal.column_list(_queue, 'key', 'k.{name}'),
        'found', pgcombine_internal.column_list(_queue, 'value', 'v.{name}'),
        'gone', pgcombine_internal.column_list(_queue, 'key', 'v.{name} is null', ' and '),
        'same_value', pgcombine_internal.column_list(_queue, 'key', 'v.{name} {equals} k.{name}', ' and '),
        'same_entry', pgcombine_internal.column_list(_queue, 'key', 'e.{name} {equals} k.{name}', ' and '),
        'waits', '(' || pgcombine_internal.column_list(_queue, 'key', 'e.{name} is not null', ' and ') || ')',
        'same_row', pgcombine_internal.column_list(_queue, 'key', 't.{name} {equals} s.{name}', ' and '),
        'columns', pgcombine_internal.column_list(_queue, form => '{name} {type}'),
        'key_sent', pgcombine_internal.column_list(_queue, 'key', 'o.{name}'),
        'key_kept', pgcombine_internal.column_list(_queue, 'key', 's.{name}::{type}'),
        'sent', pgcombine_internal.column_list(_queue, 'value', 'o.{name}'),
        'kept', pgcombine_internal.column_list(_queue, 'value', 's.{name}::{type}'),
        'is', pgcombine_internal.column_list(_queue, 'value', 't.{name}'),
        'should', pgcombine_internal.column_list(_queue, 'value', 's.{name}'),
        'after', pgcombine_internal.column_list(_queue, 'key',
            '(select {name} from jsonb_populate_record(null::{table}, $1::jsonb))'));
    _page constant text := pgcombine_internal.fill(
'select to_jsonb(pgcombine_key)::text
from (select {keys} from {table} where {filter} and ($1::jsonb is null or ({keys}) > ({after})) order by {keys}
    limit 1000) pgcombine_key', _parts);
begin
    perform pgcombine_internal.require_delivering(_export.export);
    perform pgcombine_internal.require(_export.exporter = 'postgres', 'PC003',
        format('export "%s" has the exporter %s: what it delivered can''t be read back', _export.export,
            _export.exporter),
        format('pgcombine export resync %s delivers every key again', _export.export));
    perform pgcombine_internal.require_right(_queue, 'work');
    page := pgcombine_internal.fill(_page, jsonb_build_object('table', _parts ->> 'values', 'filter', 'true'));
    target_page := pgcombine_internal.fill(_page, jsonb_build_object(
        'table', _parts ->> 'target', 'filter', '(not pgcombine_deleted or pgcombine_seq > $2::bigint)'));
    look := pgcombine_internal.fill(
'select to_jsonb(pgcombine_key)::text, to_jsonb(pgcombine_row)::text,
       {waits} or pgcombine_deleted and (select sweep from pgcombine.export where export = {export})
       or exists (select from pgcombine.export_bucket where export = {export} and full_after is not null)
from jsonb_populate_recordset(null::{values}, $1::jsonb) k
left join {values} v on {same_value}
left join (select distinct {keys} from {entries} where $2::boolean) e on {same_entry}
cross join lateral (select {looked}) pgcombine_key
cross join lateral (select {looked}, {found}, {gone} as pgcombine_deleted) pgcombine_row', _parts);
    compare := pgcombine_internal.fill(
'select pgcombine_number, case when t.pgcombine_seq > $2::bigint then ''ahead'' when s.pgcombine_deleted then '
    '''surplus''
                               when coalesce(t.pgcombine_deleted, true) then ''missing'' else ''other'' end,
                                   t.pgcombine_seq
from jsonb_array_elements($1::jsonb) with ordinality e (pgcombine_row, pgcombine_number)
cross join lateral jsonb_populate_record(null::{target}, e.pgcombine_row) s
cross join lateral jsonb_to_record(e.pgcombine_row) o ({columns})
left join {target} t on {same_row} and to_jsonb(row({key_kept})) = to_jsonb(row({key_sent}))
where t.pgcombine_seq > $2::bigint or s.pgcombine_deleted <> coalesce(t.pgcombine_deleted, true)
   or not s.pgcombine_deleted and (to_jsonb(row({is})) <> to_jsonb(row({should}))
       or to_jsonb(row({kept})) <> to_jsonb(row({sent})))', _parts);
end
$$;
