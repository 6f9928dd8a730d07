-- pgcombine_internal.jsonb_merge(documents jsonb[]), aggregate pgcombine_internal.jsonb_merge(jsonb)
-- Merges JSON objects: the result has the members of all of them, at every depth.
-- If several documents have a member and at most one of its values is an object, the greatest value in jsonb's order
-- stays (object > array > boolean > number > string > null > empty array). So the order of updates doesn't matter.
-- Documents that aren't objects count only if none is an object: the greatest of them stays. SQL nulls are ignored;
-- without any document the result is null.
-- The aggregate collects all documents and then merges them at once. Merging pair by pair would copy a document once
-- for each document after it.
create or replace function pgcombine_internal.jsonb_merge(documents jsonb[])
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
    _merged jsonb;
begin
    if cardinality(documents) = 1 then
        return documents[1];
    end if;
    select jsonb_object_agg(m.key, case when m.objects > 1 then pgcombine_internal.jsonb_merge(m.nested)
        else m.greatest end)
    into _merged
    from (
        select e.key, count(*) filter (where jsonb_typeof(e.value) = 'object') as objects,
               array_agg(e.value) filter (where jsonb_typeof(e.value) = 'object') as nested,
               (array_agg(e.value order by e.value desc))[1] as greatest
        from unnest(documents) d cross join lateral jsonb_each(case jsonb_typeof(d) when 'object' then d end) e
        group by e.key
    ) m;
    return coalesce(_merged, (select d from unnest(documents) d where d is not null
                              order by jsonb_typeof(d) = 'object' desc, d desc limit 1));
end
$$;
create or replace aggregate pgcombine_internal.jsonb_merge(jsonb) (
    sfunc = array_append, stype = jsonb[], finalfunc = pgcombine_internal.jsonb_merge
);
