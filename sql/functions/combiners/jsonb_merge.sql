-- pgcombine.jsonb_merge(a, b), aggregate pgcombine.jsonb_merge(a)
-- The members of both objects, at every depth. Where both have a member and not both are objects, the greater
-- in jsonb's order stays (object > array > boolean > number > string > null), so that the order of updates
-- doesn't matter.
create or replace function pgcombine.jsonb_merge(a jsonb, b jsonb)
returns jsonb
language sql immutable strict parallel safe
as $$
    select case
        when a = b then a
        when jsonb_typeof(a) = 'object' and jsonb_typeof(b) = 'object' then (
            select coalesce(jsonb_object_agg(key, coalesce(pgcombine.jsonb_merge(l.value, r.value), l.value, r.value)), '{}')
            from jsonb_each(a) l full join jsonb_each(b) r using (key))
        when jsonb_typeof(a) = 'object' then a
        when jsonb_typeof(b) = 'object' then b
        else greatest(a, b) end
$$;
create or replace aggregate pgcombine.jsonb_merge(jsonb) (sfunc = pgcombine.jsonb_merge, stype = jsonb);
