-- pgcombine_internal.require_feed(feed) → pgcombine.feed
-- Returns the definition of a feed.
-- Errors: PC050 there is no such feed.
create or replace function pgcombine_internal.require_feed(feed text)
returns pgcombine.feed
language plpgsql stable
as $$
declare
    _feed pgcombine.feed;
begin
    select f.* into _feed from pgcombine.feed f where f.feed = require_feed.feed;
    if not found then
        raise exception 'there is no feed %', coalesce('"' || require_feed.feed || '"', 'null')
            using errcode = 'PC050', hint = 'pgcombine feed ls lists them';
    end if;
    return _feed;
end
$$;
