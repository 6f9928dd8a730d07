-- pgcombine_internal.feed_portion(feed, after, most, upto) → (low, high, changes)
-- Returns the sequences after which and up to which <feed>_read reads each bucket, and the number of changes between
-- them.
-- Since <feed>_read runs with its owner's rights, this function first checks the role that called it.
--   after  null: the portion is empty
--   upto   null: the result of feed_offset(feed, after, most)
-- Errors: those of feed_offset; PC003 upto is before the offset, or beyond a rebucket.
create or replace function pgcombine_internal.feed_portion(feed text, after jsonb, most integer, upto jsonb,
    out low jsonb, out high jsonb, out changes bigint)
language plpgsql stable
as $$
#variable_conflict use_column
declare
    _feed constant pgcombine.feed := pgcombine_internal.require_feed(feed_portion.feed);
    _problem text;
begin
    if feed_portion.after is null then
        select '{}', '{}', 0 into low, high, changes;
        return;
    end if;
    high := coalesce(feed_portion.upto, pgcombine.feed_offset(_feed.feed, feed_portion.after, feed_portion.most));
    perform pgcombine_internal.feed_bounds(_feed.feed, high);
    select jsonb_object_agg(b.bucket, b.low), sum(coalesce(u.upto - b.low, 0)),
           min(case when u.upto < b.low then format('the sequence %s of bucket %s is before the offset, %s', u.upto,
                        b.bucket, b.low)
                    when u.upto > b.high then format('the sequence %s of bucket %s is beyond a rebucket, at %s', u.upto,
                        b.bucket, b.high) end)
    into low, changes, _problem
    from pgcombine_internal.feed_bounds(_feed.feed, feed_portion.after) b
    cross join lateral (select (feed_portion.high ->> b.bucket::text)::bigint as upto) u;
    perform pgcombine_internal.require(_problem is null, 'PC003', _problem,
        'give as upto what pgcombine.feed_offset returns for this offset');
end
$$;
