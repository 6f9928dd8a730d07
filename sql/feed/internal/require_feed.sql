-- pgcombine_internal.require_feed(feed) → pgcombine.change_log
-- Returns the change log that is read as a feed.
-- Errors: PC050 there is no such feed.
create or replace function pgcombine_internal.require_feed(feed text)
returns pgcombine.change_log
language plpgsql stable
as $$
declare
    _log pgcombine.change_log;
begin
    select l.* into _log from pgcombine.change_log l where l.feed = require_feed.feed;
    if not found then
        raise exception 'there is no feed %', coalesce('"' || require_feed.feed || '"', 'null')
            using errcode = 'PC050', hint = 'pgcombine feed ls lists them';
    end if;
    return _log;
end
$$;
