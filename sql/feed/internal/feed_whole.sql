-- pgcombine_internal.feed_whole(feed, counted, expected) → true
-- Raises an error unless two numbers are equal. <feed>_read passes the number of changes that it has found, and the
-- number of sequences in its portion. They differ if a segment was truncated after the snapshot of <feed>_read, which
-- then finds none of the segment's changes. feed_bounds passes numbers that differ if changes are no longer kept.
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
