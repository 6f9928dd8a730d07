-- pgcombine_internal.export_take(export, bucket, entries [, raw]) → text
-- Returns the statement that takes entries with the least sequences out of a claimed bucket: it deletes and returns
-- them. The caller commits once they are delivered; a rollback brings them back.
-- If the export compacts, the statement also marks earlier entries of the same keys in the quarantine, since the taken
-- entries supersede them.
--   entries  the maximum number of entries
--   raw      false: the statement returns the key columns, old_…, new_…, seq and the entry as JSON, ordered by key and
--            sequence. If the export compacts, it returns one row for each key: first old, last new, last sequence. A
--            key that comes in another form, too (1.0 after 1), has a row for each form. True: the statement returns
--            the key columns, new_… and seq of the entries in no order, for a COPY to a place that compacts them
-- The JSON of an export with a format also has pgcombine_at.
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.export_take(export text, bucket integer, entries integer,
    raw boolean default false)
returns text
language plpgsql stable
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_take.export);
    _superseded text := '';
    _olds constant text := pgcombine_internal.column_list(_export.queue, 'value', '{old}');
    -- Equal keys may have different texts (1 and 1.0), which are two keys for a destination that stores keys as text.
    -- So each text gets a row. Texts of equal keys can differ with a collation, and for types whose operator class has
    -- no equalimage function (support function 4).
    _forms constant text := (
        select string_agg(format(', %I::text', c.name), '' order by c.position)
        from pgcombine.queue_column c
        where c.queue = _export.queue and c.role = 'key' and (c.collation is not null or not exists (
            select from pg_opclass o
            join pg_amproc p on p.amprocfamily = o.opcfamily and p.amproclefttype = o.opcintype and p.amprocnum = 4
            where o.oid = pgcombine_internal.type_operator_class(c.type::regtype, 'btree'))));
begin
    if _export.compact and exists (select from pgcombine.export_quarantine q where q.export = _export.export) then
        _superseded := format(', superseded as (
    delete from pgcombine.export_quarantine q
    where q.export = %1$L and q.seq in (
        select e.seq
        from pgcombine.export_quarantine h cross join jsonb_populate_record(null::pgcombine.%2$I, h.entry) e
            join taken on %3$s
        where h.export = %1$L and e.seq < taken.seq)
)', _export.export, _export.export || '_exports', pgcombine_internal.column_list(_export.queue, 'key',
            'e.{name} {equals} taken.{name}', ' and '));
    end if;
    return pgcombine_internal.fill(case when export_take.raw and _superseded = '' then
'delete from {entries} where ctid = any (array(select ctid from {entries} order by seq limit {limit})) returning '
    '{keys}, {news}, seq'
    else
'with taken as (
    delete from {entries} where ctid = any (array(select ctid from {entries} order by seq limit {limit})) returning *
){superseded}
' || case when export_take.raw then 'select {keys}, {news}, seq from taken' else
'select {keys}, {olds}, {news}, seq, to_jsonb(entry)::text as pgcombine_entry
from (
    select {keys}, {olds}, {news}, seq{at}
    from (select {keys}, {first_olds}, {news}, seq{at}, lead(seq) over same is null as pgcombine_last
          from taken window same as (partition by {keys}{forms} order by seq)) each
    {last}
) entry
order by {keys}, seq'
    end end, jsonb_build_object(
        'superseded', _superseded, 'entries', format('pgcombine.%I',
            _export.export || '_exports_b' || to_char(export_take.bucket, 'FM0000')), 'limit', export_take.entries,
        'at', case when _export.format is not null then ', pgcombine_at' else '' end,
        'keys', pgcombine_internal.column_list(_export.queue, 'key'), 'forms', _forms, 'olds', _olds,
        'news', pgcombine_internal.column_list(_export.queue, 'value', '{new}'),
        'first_olds', case when _export.compact then pgcombine_internal.column_list(_export.queue, 'value',
            'first_value({old}) over same as {old}') else _olds end,
        'last', case when _export.compact then 'where pgcombine_last' end));
end
$$;
