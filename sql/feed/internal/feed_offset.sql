-- pgcombine_internal.feed_offset(feed [, after, most]) → jsonb
-- Returns an offset of a feed: the present one, or the end of a portion of changes.
-- An offset is an object that has a sequence for each bucket, such as {"0": 812, "1": 977}: the consumer has read the
-- bucket's changes up to this sequence.
--   after  null: the result is the present offset. Otherwise the result is the end of the portion of changes after this
--          offset, for <feed>_read. If no change follows, the end is this offset, with all buckets. The changes
--          from before a rebucket and those from after it are in different portions
--   most   maximum number of changes in the portion, spread over the buckets. Null: no maximum
-- A consumer gets this offset together with the changes, from <feed>_read. Two calls would be two snapshots: an offset
-- that is asked for after the changes skips those that were committed in between.
-- Errors: PC050 unknown feed; PC051 changes after the offset are no longer kept: read everything again, from
-- <feed>_snapshot; PC003 an invalid offset or number; 42501 the caller lacks the right to read the queue.
create or replace function pgcombine_internal.feed_offset(feed text, after jsonb default null,
    most integer default null)
returns jsonb
language plpgsql stable
as $$
declare
    _feed constant pgcombine.change_log := pgcombine_internal.require_feed(feed_offset.feed);
    _left bigint := feed_offset.most;
    _bound record;
    _take bigint;
    _buckets integer[];
    _ends bigint[];
begin
    perform pgcombine_internal.require_right(_feed.queue, 'read');
    if feed_offset.most < 1 then
        raise exception 'a portion of % changes is empty', feed_offset.most
            using errcode = 'PC003', hint = 'give at least 1, or null for no maximum';
    elsif after is null then
        return pgcombine_internal.change_vector(_feed.queue);
    end if;
    -- Buckets with few changes come first, so that others can take what these leave of their shares. If there are more
    -- buckets with changes than the portion may have changes, the order is random.
    for _bound in
        select b.bucket, b.low, b.high, count(*) over () - row_number() over turn + 1 as buckets
        from (select b.*, count(*) filter (where b.high > b.low) over () as filled
              from pgcombine_internal.feed_bounds(_feed.feed, after) b) b
        window turn as (order by b.high > b.low, case when b.filled < feed_offset.most then b.high - b.low end,
            random())
    loop
        _take := least(_bound.high - _bound.low, (_left + _bound.buckets - 1) / _bound.buckets);
        _left := _left - _take;
        _buckets := _buckets || _bound.bucket;
        _ends := _ends || _bound.low + _take;
    end loop;
    return (select coalesce(jsonb_object_agg(e.bucket, e.upto), '{}') from unnest(_buckets, _ends) e (bucket, upto));
end
$$;
