-- pgcombine.jsonb_merge(documents jsonb[]), aggregate pgcombine.jsonb_merge(jsonb)
-- The members of all objects, at every depth. Where several have a member and at most one of these is an object, the
-- greatest in jsonb's order stays (object > array > boolean > number > string > null), so that the order of updates
-- doesn't matter. Nulls count as nothing; without any document the result is null.
-- All documents are merged at once: pair by pair, each would be copied as often as there are documents after it. So
-- the time is about linear in their total size. They are in memory together, those of one key of one pass.
create or replace function pgcombine.jsonb_merge(documents jsonb[])
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
    _merged jsonb;
begin
    if cardinality(documents) = 1 then
        return documents[1];
    end if;
    select jsonb_object_agg(m.key, case when m.objects > 1 then pgcombine.jsonb_merge(m.nested) else m.greatest end)
    into _merged
    from (
        select e.key, count(*) filter (where jsonb_typeof(e.value) = 'object') as objects,
               array_agg(e.value) filter (where jsonb_typeof(e.value) = 'object') as nested,
               pgcombine.greatest(e.value) as greatest
        from unnest(documents) d cross join lateral jsonb_each(case jsonb_typeof(d) when 'object' then d end) e
        group by e.key
    ) m;
    return coalesce(_merged, (select d from unnest(documents) d where d is not null
                              order by jsonb_typeof(d) = 'object' desc, d desc limit 1));
end
$$;
create or replace aggregate pgcombine.jsonb_merge(jsonb) (
    sfunc = array_append, stype = jsonb[], finalfunc = pgcombine.jsonb_merge
);
