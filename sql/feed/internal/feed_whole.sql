-- pgcombine_internal.feed_whole(feed, counted, expected) → true
-- Raises unless <feed>_read has found as many changes as there are sequences in its portion. A snapshot from before the
-- truncation of a segment finds none of the segment's changes.
-- Errors: PC051 changes after the offset are no longer kept.
create or replace function pgcombine_internal.feed_whole(feed text, counted bigint, expected bigint)
returns boolean
language plpgsql stable
as $$
begin
    if counted <> expected then
        raise exception 'changes of feed "%" after the offset are no longer kept', feed using errcode = 'PC051',
            hint = format('read it all again: select * from pgcombine.%I()', feed || '_snapshot');
    end if;
    return true;
end
$$;
