-- pgcombine_internal.export_take(export, bucket, entries [, raw]) → text
-- Returns the statement that takes the next entries of a claimed bucket, and records that they are delivered. The
-- caller commits once they are; a rollback brings them back. In one snapshot the statement takes, in the order of their
-- numbers, changes after the bucket's offset, and entries that wait again. If that is fewer than the maximum, and a
-- full state is due, the statement also takes the next keys in the order of keys, each with its value.
-- While a full state is due, changes of the keys that it hasn't reached aren't delivered, since it will have their
-- values. Only deletions are: the full state lacks these keys.
-- Entries of a key with an entry in quarantine go into the quarantine, too. If the export compacts, the quarantine
-- keeps one entry of the key: the first old values, and the last new ones.
--   entries  the maximum number of changes and keys
--   raw      false: the statement returns the key columns, old_…, new_…, seq and the entry as JSON, ordered by key and
--            sequence. If the export compacts, it returns one row for each key: first old, last new, last sequence. A
--            key that comes in another form, too (1.0 after 1), has a row for each form. True: the statement returns
--            the key columns, new_… and seq of the entries in no order, for a COPY to a place that compacts them
-- The JSON of an export with a format also has pgcombine_at.
-- Tables written: export_bucket, export_entry.
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.export_take(export text, bucket integer, entries integer,
    raw boolean default false)
returns text
language plpgsql stable
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_take.export);
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(_export.queue);
    _own pgcombine.export_bucket;
    _held boolean;
    _compact boolean; -- whether the statement returns one row for each key
    _olds constant text := pgcombine_internal.column_list(_queue.queue, 'value', '{old}');
    -- Equal keys may have different texts (1 and 1.0), which are two keys for a destination that stores keys as text.
    -- So each text gets a row. Texts of equal keys can differ with a collation, and for types whose operator class has
    -- no equalimage function (support function 4).
    _forms constant text := (
        select string_agg(format(', %I::text', c.name), '' order by c.position)
        from pgcombine.queue_column c
        where c.queue = _queue.queue and c.role = 'key' and (c.collation is not null or not exists (
            select from pg_opclass o
            join pg_amproc p on p.amprocfamily = o.opcfamily and p.amproclefttype = o.opcintype and p.amprocnum = 4
            where o.oid = pgcombine_internal.type_operator_class(c.type::regtype, 'btree'))));
    _parts jsonb;
begin
    select x.* into _own from pgcombine.export_bucket x
    where x.export = _export.export and x.bucket = export_take.bucket;
    _held := exists (select from pgcombine.export_entry q
        where q.export = _export.export and q.bucket = export_take.bucket and q.error is not null);
    _compact := _export.compact and (_held or not export_take.raw);
    _parts := jsonb_build_object(
        'export', quote_literal(_export.export), 'queue', quote_literal(_queue.queue), 'bucket', export_take.bucket,
        'log', format('pgcombine.%I', _queue.queue || '_changes'), 'limit',
        -- no more than the full state has numbers left
        least(export_take.entries, case when _own.full_after is not null then _own.full_end - _own.full_seq end),
        'after', _own.after, 'epoch', _export.epoch << 40,
        'keys', pgcombine_internal.column_list(_queue.queue, 'key'), 'olds', _olds,
        'news', pgcombine_internal.column_list(_queue.queue, 'value', '{new}'),
        'waiting', concat_ws(', ', pgcombine_internal.column_list(_queue.queue, 'key', 'e.{name}'),
            pgcombine_internal.column_list(_queue.queue, 'value', 'e.{old}'),
            pgcombine_internal.column_list(_queue.queue, 'value', 'e.{new}')),
        'old_names', (select string_agg(quote_literal('old_' || c.name), ', ') from pgcombine.queue_column c
            where c.queue = _queue.queue and c.role = 'value'),
        'gone', pgcombine_internal.column_list(_queue.queue, 'value', '{new} is null', ' and '),
        'forms', _forms,
        'first_olds', case when _compact then pgcombine_internal.column_list(_queue.queue, 'value',
            'first_value({old}) over same as {old}') else _olds end,
        'last', case when _compact then 'where pgcombine_last' end,
        'at', case when _export.format is not null then ', pgcombine_at' end,
        'values', pgcombine_internal.values_table(_queue.queue, export_take.bucket % _queue.partitions),
        'columns', pgcombine_internal.column_list(_queue.queue, 'value'),
        'nulls', pgcombine_internal.column_list(_queue.queue, 'value', 'null::{type}'),
        'condition', coalesce(' and ' || nullif(pgcombine_internal.bucket_condition(_queue.queue,
            export_take.bucket::text), ''), ''),
        'same_key', pgcombine_internal.column_list(_queue.queue, 'key',
            'pgcombine_held.{name} {equals} pgcombine_row.{name}', ' and '),
        'texts', pgcombine_internal.column_list(_queue.queue, 'key', '{literal}, {name}::text'),
        -- an entry that waits from before the full state; later ones are like changes
        'sent_before', format('(pgcombine_id is not null and seq <= %s)', _own.full_end),
        'full_seq', _own.full_seq,
        'beyond', coalesce(pgcombine_internal.full_state_condition(_queue.queue, _own.full_after), 'true'));
    return pgcombine_internal.fill(pgcombine_internal.fill(
'with taken as materialized (
    select * from (
        (select {keys}, {olds}, {news}, _number + {epoch} as seq, _sequence, _commit_timestamp as pgcombine_at,
                null::bigint as pgcombine_id
         from {log} where _bucket = {bucket} and _sequence > {after} order by _sequence limit {limit})
        union all
        (select {waiting}, q.seq, null, (q.entry ->> ''pgcombine_at'')::timestamptz, q.id
         from pgcombine.export_entry q cross join jsonb_populate_record(null::{log}, q.entry) e
         where q.export = {export} and q.bucket = {bucket} and q.error is null order by q.seq limit {limit})) u
    order by seq limit {limit}
), waited as (
    delete from pgcombine.export_entry q where q.id in (select pgcombine_id from taken)
), {whole}moved as (
    update pgcombine.export_bucket x set after = greatest(x.after, (select max(_sequence) from taken)){moved}
    where x.export = {export} and x.bucket = {bucket}
), pgcombine_entry as (
    select {keys}, {olds}, {news}, seq{at}
    from (select {keys}, {first_olds}, {news}, seq, pgcombine_at, lead(seq) over same is null as pgcombine_last
          from {source} window same as (partition by {keys}{forms} order by seq)) each
    {last}
){held}
' || case when export_take.raw then 'select {keys}, {news}, seq from {sent} pgcombine_row' else
'select {keys}, {olds}, {news}, seq, to_jsonb(pgcombine_row)::text as pgcombine_entry
from {sent} pgcombine_row order by {keys}, seq'
    end, jsonb_build_object(
        'whole', case when _own.full_after is not null then
'room as ( -- for keys of the full state: none before all changes up to now are taken
    select case when b.last <= coalesce(t.last, {after}) then {limit} - t.count else 0 end as pgcombine_count,
           {full_seq} + t.gone as pgcombine_seq
    from pgcombine.change_bucket b,
         (select count(*), max(_sequence) as last,
                 count(*) filter (where not {sent_before} and {gone} and {beyond}) as gone from taken) t
    where b.queue = {queue} and b.bucket = {bucket}
), whole as materialized (
    select {keys}, {columns} from {values} where {beyond}{condition} order by {keys}
    limit (select pgcombine_count from room)
), numbered as (
    select {keys}, {columns}, row_number() over (order by {keys}) as pgcombine_place from whole
), ' end,
        'moved', case when _own.full_after is not null then ',
        full_after = case when r.pgcombine_count = 0 then x.full_after when w.count = r.pgcombine_count then w.key end,
        full_seq = r.pgcombine_seq + w.count
    from room r, (select count(*), (select jsonb_build_object({texts}) from numbered
        order by pgcombine_place desc limit 1) as key from numbered) w' end,
        'source', case when _own.full_after is null then 'taken' else
'(select {keys}, {olds}, {news}, seq, pgcombine_at from taken where {sent_before} or not ({beyond})
          union all
          select {keys}, {nulls}, {news}, least(seq, {full_seq} + row_number() over (order by seq)), pgcombine_at
          from taken where not {sent_before} and {gone} and {beyond}
          union all
          select {keys}, {nulls}, {columns}, pgcombine_seq + pgcombine_place, now()
          from numbered, room) source' end,
        'held', case when _held and _compact then ', held as (
    update pgcombine.export_entry q
    set seq = pgcombine_row.seq, entry = q.entry || (to_jsonb(pgcombine_row) - array[{old_names}])
    from pgcombine_entry pgcombine_row,
         pgcombine.export_entry o cross join jsonb_populate_record(null::{log}, o.entry) pgcombine_held
    where o.id = q.id and q.export = {export} and q.error is not null and {same_key}
    returning pgcombine_row.seq
)' when _held then ', held as (
    insert into pgcombine.export_entry (export, bucket, seq, entry, error)
    select {export}, {bucket}, pgcombine_row.seq, to_jsonb(pgcombine_row),
           ''an earlier entry of the key is in quarantine''
    from pgcombine_entry pgcombine_row
    where exists (select from pgcombine.export_entry q
                  cross join jsonb_populate_record(null::{log}, q.entry) pgcombine_held
                  where q.export = {export} and q.error is not null and {same_key})
    returning seq
)' end,
        'sent', case when _held then '(select * from pgcombine_entry where seq not in (select seq from held))'
            else 'pgcombine_entry' end)),
        _parts);
end
$$;
