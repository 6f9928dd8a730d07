-- pgcombine_internal.handoff_insert_sql(queue [, packed]) → text
-- Returns the statement that appends the updates of writes to a queue. Its parameter is an array of payloads. A payload
-- is the text of a text[] with one element for each column of the queue, in order; the element is the text of an array
-- of that column's values.
--   packed  whether one call of <queue>_enqueue packs all updates, for which the texts of the payloads' arrays are
--           joined. Null is returned if there is no such function, if a type's arrays have another text form, or if the
--           table has a check constraint, which packed updates would evade
create or replace function pgcombine_internal.handoff_insert_sql(queue text, packed boolean default false)
returns text
language plpgsql stable
as $$
begin
    return (select case when not handoff_insert_sql.packed then
        format('insert into pgcombine.%I (%s) select %s from unnest($1) p (payload), lateral (select p.payload::text[] as c) t, lateral unnest(%s) as u (%s)',
            handoff_insert_sql.queue || '_updates',
            pgcombine_internal.column_list(handoff_insert_sql.queue),
            string_agg(format('u.%I', c.name) || case when d.direct then '' else '::' || c.type end, ', ' order by c.position),
            string_agg(format('t.c[%s]::%s[]', c.position + 1, case when d.direct then c.type else 'text' end), ', ' order by c.position),
            pgcombine_internal.column_list(handoff_insert_sql.queue))
        when bool_and(y.typdelim = ',' and y.typcategory <> 'A')
             and to_regproc(format('pgcombine.%I', handoff_insert_sql.queue || '_enqueue')) is not null
             and not exists (select from pg_constraint k where k.contype = 'c'
                             and k.conrelid = to_regclass(format('pgcombine.%I', handoff_insert_sql.queue || '_updates'))) then
        format('select pgcombine.%I(%s) from (select %s from unnest($1) p (payload), lateral (select p.payload::text[] as c) t) j',
            handoff_insert_sql.queue || '_enqueue',
            pgcombine_internal.column_list(handoff_insert_sql.queue, form => 'j.c{number}::{type}[]'),
            pgcombine_internal.column_list(handoff_insert_sql.queue,
                form => $join$'{' || string_agg(nullif(btrim(t.c[{number}], '{}'), ''), ',') || '}' as c{number}$join$))
        end
    from pgcombine.queue_column c
    join pg_type y on y.oid = c.type::regtype
    -- direct: the array of the column's type is parsed at once. Otherwise each element is cast by itself, since the type has
    -- no arrays or their text follows other rules.
    cross join lateral (select y.typarray <> 0 and y.typcategory <> 'A' and y.typdelim = ',' and y.typtype = 'b' as direct) d
    where c.queue = handoff_insert_sql.queue);
end
$$;
