-- pgcombine.handoff_last(name) → uuid
-- The last token, as far as was noted, that a server acknowledged to this one, or that came from it: it must remember
-- it (handoff_remembers). Null: there is none.
create or replace function pgcombine.handoff_last(name text)
returns uuid
language sql stable
as $$
    select d.token from pgcombine.handoff_delivery d where d.destination = handoff_last.name order by d.at desc limit 1
$$;
