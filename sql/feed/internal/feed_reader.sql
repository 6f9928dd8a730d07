-- pgcombine_internal.feed_reader(feed) → pgcombine.change_log
-- Returns a feed's change log to a function that runs with its owner's rights. Raises an error unless the role that
-- called that function may read the feed's queue.
-- Errors: PC050 unknown feed; 42501 the role lacks the right.
create or replace function pgcombine_internal.feed_reader(feed text)
returns pgcombine.change_log
language plpgsql
as $$
declare
    _role constant name := pgcombine_internal.caller();
    _log constant pgcombine.change_log := pgcombine_internal.require_feed(feed_reader.feed);
begin
    perform pgcombine_internal.require_right(_log.queue, 'read', _role);
    return _log;
end
$$;
