-- pgcombine.mark_place(queue, alias) → text
-- Which of its bucket's marks (see bucket_marks, as b) is that of a row with the queue's key columns.
create or replace function pgcombine.mark_place(queue text, alias text)
returns text
language sql stable
as $$
    select format('case when b.mask = 0 then 1 else 1 + (%s & b.mask) end', pgcombine.key_hash(mark_place.queue, mark_place.alias))
$$;
