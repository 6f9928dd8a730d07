-- pgcombine_internal.right_subjects(right, subjects) → setof text
-- Returns the queues that are named, or exports if the right is export; all if a name is '*'.
-- Errors: PC003 a queue is named for a right that concerns none (monitor, replay), or none for a right that needs one.
create or replace function pgcombine_internal.right_subjects("right" text, subjects text[])
returns setof text
language plpgsql stable
as $$
begin
    if right_subjects."right" in ('monitor', 'replay') and cardinality(right_subjects.subjects) > 0 then
        raise exception 'the right % concerns no single queue', right_subjects."right"
            using errcode = 'PC003', hint = 'leave the names of queues out';
    elsif right_subjects."right" not in ('monitor', 'replay', 'handoff') and cardinality(right_subjects.subjects) = 0 then
        raise exception 'the right % needs the name of %', right_subjects."right",
            case right_subjects."right" when 'export' then 'an export' else 'a queue' end
            using errcode = 'PC003', hint = 'give one or several names, or ''*'' for all, including later ones';
    end if;
    return query
    select s from unnest(right_subjects.subjects) s where not '*' = any (right_subjects.subjects)
    union all
    select q.queue from pgcombine.queue q where '*' = any (right_subjects.subjects) and right_subjects."right" <> 'export'
    union all
    select e.export from pgcombine.export e where '*' = any (right_subjects.subjects) and right_subjects."right" = 'export';
end
$$;
