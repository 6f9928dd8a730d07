-- pgcombine_internal.export_take(export, bucket, entries [, raw]) → text
-- Returns the statement that takes a number of entries out of a claimed bucket. It takes those with the least sequence,
-- so a key's entries are taken in order.
-- The statement deletes the entries. Commit once they are delivered; a rollback brings them back.
--   entries  their largest number
--   raw      false: the statement returns the key columns, old_…, new_…, seq and the entry as JSON, ordered by key and
--            sequence. If the export compacts, it returns one row a key: first old, last new, last sequence. True: it
--            returns the key columns, new_… and seq of every entry in no order, for a COPY to a place that compacts
--            them
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.export_take(export text, bucket integer, entries integer, raw boolean default false)
returns text
language plpgsql stable
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_take.export);
    _table constant text := format('pgcombine.%I', _export.export || '_exports_b' || to_char(export_take.bucket, 'FM0000'));
    _c record;
begin
    select string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key') as keys,
           string_agg(format('%I', 'old_' || c.name), ', ' order by c.position) filter (where c.role = 'value') as olds,
           string_agg(format('first_value(%1$I) over same as %1$I', 'old_' || c.name), ', ' order by c.position)
               filter (where c.role = 'value') as first_olds,
           string_agg(format('%I', 'new_' || c.name), ', ' order by c.position) filter (where c.role = 'value') as news
    into _c
    from pgcombine.queue_column c
    where c.queue = _export.queue;
    if export_take.raw then
        return format('delete from %1$s where ctid = any (array(select ctid from %1$s order by seq limit %2$s)) returning %3$s, %4$s, seq',
            _table, export_take.entries, _c.keys, _c.news);
    end if;
    return format(
$take$with taken as (
    delete from %1$s where ctid = any (array(select ctid from %1$s order by seq limit %2$s)) returning *
)
select %3$s, %4$s, %5$s, seq, to_jsonb(entry)::text as pgcombine_entry
from (
    select %3$s, %4$s, %5$s, seq
    from (select %3$s, %6$s, %5$s, seq, lead(seq) over same is null as pgcombine_last
          from taken window same as (partition by %3$s order by seq)) each
    %7$s
) entry
order by %3$s, seq$take$,
        _table, export_take.entries, _c.keys, _c.olds, _c.news,
        case when _export.compact then _c.first_olds else _c.olds end,
        case when _export.compact then 'where pgcombine_last' else '' end);
end
$$;
