-- pgcombine_internal.feed_whole(feed, counted, expected) → true
-- Raises unless two numbers are equal. For <feed>_read they are the number of changes that it has found, and the number
-- of sequences in its portion: a snapshot from before the truncation of a segment finds none of the segment's changes.
-- feed_bounds gives unequal numbers to raise the same error.
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
