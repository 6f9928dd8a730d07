-- pgcombine_internal.feed_portion(feed, after, most, upto) → (low, high, changes, next)
-- Returns for each bucket the sequence after which <feed>_read begins and the one up to which it reads, and the number
-- of changes in the portion, and the offset after the portion.
-- The function doesn't check the right of the caller of <feed>_read: <feed>_read has done so (see feed_reader).
--   after  null: the portion is empty, and next is the present offset
--   upto   null: the result of feed_offset(feed, after, most). The portion has no changes of a bucket that upto lacks
-- Errors: those of feed_offset; PC003 upto is before after, beyond a rebucket, or given with most.
create or replace function pgcombine_internal.feed_portion(feed text, after jsonb, most integer, upto jsonb,
    out low jsonb, out high jsonb, out changes bigint, out next jsonb)
language plpgsql stable
as $$
#variable_conflict use_column
declare
    _feed constant pgcombine.change_log := pgcombine_internal.require_feed(feed_portion.feed);
    _highest jsonb;
    _problem text;
begin
    perform pgcombine_internal.require(num_nonnulls(feed_portion.most, feed_portion.upto) < 2, 'PC003',
        'upto and most can''t be given together: both end the portion', 'give one of upto and most');
    if feed_portion.after is null then
        select '{}', '{}', 0, pgcombine_internal.change_vector(_feed.queue) into low, high, changes, next;
        return;
    end if;
    high := coalesce(feed_portion.upto,
        pgcombine_internal.feed_offset(_feed.feed, feed_portion.after, feed_portion.most));
    select jsonb_object_agg(b.bucket, b.low), jsonb_object_agg(b.bucket, b.high) into low, _highest
    from pgcombine_internal.feed_bounds(_feed.feed, feed_portion.after) b;
    perform pgcombine_internal.feed_bounds(_feed.feed,
        case jsonb_typeof(high) when 'object' then low || high else high end);
    select coalesce(sum(u.value::bigint - (low ->> u.key)::bigint), 0),
           min(case when u.value::bigint < (low ->> u.key)::bigint
                        then format('the sequence %s of bucket %s is before the offset, %s', u.value, u.key,
                            low ->> u.key)
                    when u.value::bigint > (_highest ->> u.key)::bigint
                        then format('the sequence %s of bucket %s is beyond a rebucket, at %s', u.value, u.key,
                            _highest ->> u.key) end)
    into changes, _problem
    from jsonb_each_text(high) u;
    perform pgcombine_internal.require(_problem is null, 'PC003', _problem,
        'give as upto an offset that follows this one; read without upto returns such an offset');
    next := low || high;
end
$$;
