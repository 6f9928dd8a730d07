-- pgcombine.combine_sql(queue, bucket [, condition, tail, packed, few, observed]) → text
-- The statement that a pass over this bucket runs after its claim, to read or to explain.
--   condition  a where clause that restricts the rows it takes, to whole keys; empty: all of the bucket
--   tail       what the statement returns besides updates, keys and changes
--   packed     whether there are packed rows among these. Null: there may be; without a condition they are taken, too,
--              with one they are left: they hold several keys, and begin_pass has unpacked what must be taken
--   few        whether it takes few updates. The planner can't know that (a table that fills and empties has no
--              statistics that hold) and would read all values to join some of them. So the statement looks old values
--              up key by key (offset 0 keeps the planner from another join), and has a condition that the planner takes
--              for selective where it writes them (num_nulls). Settings of the planner (enable_hashjoin) would reach
--              the statements of combiners and observers, too
--   observed   whether the observers are part of it
-- Errors: PC001 unknown queue; PC003 the queue has no such bucket.
create or replace function pgcombine.combine_sql(queue text, bucket integer, condition text default '', tail text default '',
    packed boolean default null, few boolean default false, observed boolean default true)
returns text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(combine_sql.queue);
    _slice text;
    _tables text[];
    _packed boolean;
    _updates text;
begin
    if combine_sql.bucket is null or combine_sql.bucket not between 0 and _queue.buckets - 1 then
        raise exception 'queue "%" has no bucket %', _queue.queue, coalesce(combine_sql.bucket::text, 'null')
            using errcode = 'PC003', hint = format('its buckets are 0 to %s', _queue.buckets - 1);
    end if;
    _slice := pgcombine.bucket_slice(_queue.queue, combine_sql.bucket);
    _tables := pgcombine.bucket_tables(_queue.queue, combine_sql.bucket);
    condition := coalesce(combine_sql.condition, '');
    _packed := coalesce(combine_sql.packed, condition = '') and pgcombine.packs(_queue.queue);
    if _slice <> '' then
        condition := case when condition = '' then 'where ' else condition || ' and ' end || _slice;
    end if;
    if pgcombine.packed_updates(_queue.queue, _tables[1]) is not null then
        if _packed then
            _updates := format(E'(\n        select %s from %s\n        union all\n        %s\n    ) as updates',
                (select string_agg(format('%I', c.name), ', ' order by c.position)
                 from pgcombine.queue_column c where c.queue = _queue.queue),
                concat_ws(' ', _tables[1], nullif(condition, '')),
                pgcombine.packed_updates(_queue.queue,
                    case when condition = '' then _tables[1] else format('(select * from %s %s) as taken', _tables[1], condition) end));
        elsif combine_sql.packed is not false then
            condition := 'where ' || pgcombine.plain_rows(_queue.queue) || coalesce(nullif(substr(condition, length('where ') + 1), ''), 'true');
        end if;
    end if;
    return format(case when combine_sql.observed then _queue.pass else pgcombine.generate_pass(_queue.queue, false) end, _tables[1], _tables[2], condition, combine_sql.tail,
        coalesce(_updates, _tables[1] || ' ' || condition),
        case when combine_sql.few then ' offset 0' else '' end,
        case when combine_sql.few then ' and num_nulls(c.pgcombine_row) = 0' else '' end);
end
$$;
