-- pgcombine_internal.feed_reader(feed) → pgcombine.feed
-- Returns a feed's definition to a function that runs with its owner's rights. Raises an error unless the role that
-- called that function may read the feed's queue.
-- Errors: PC050 unknown feed; 42501 the role lacks the right.
create or replace function pgcombine_internal.feed_reader(feed text)
returns pgcombine.feed
language plpgsql
as $$
declare
    _role constant name := pgcombine_internal.caller();
    _feed constant pgcombine.feed := pgcombine_internal.require_feed(feed_reader.feed);
begin
    perform pgcombine_internal.require_right(_feed.queue, 'read', _role);
    return _feed;
end
$$;
