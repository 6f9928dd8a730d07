-- pgcombine.handoff_insert_sql(queue [, packed]) → text
-- The statement that appends the updates of writes to a queue. Its parameter is an array of payloads. A payload is the
-- text of a text[] with one element a column of the queue, in order, which is the text of an array of its values.
--   packed  all in one call of <queue>_enqueue, which packs them: the payloads' arrays are made one by joining their
--           texts. Null where there is no such function, a type's arrays are written otherwise, or a check was added to
--           the table, which packed updates would evade
create or replace function pgcombine.handoff_insert_sql(queue text, packed boolean default false)
returns text
language plpgsql stable
as $$
begin
    return (select case when not handoff_insert_sql.packed then
        format('insert into pgcombine.%I (%s) select %s from unnest($1) p (payload), lateral (select p.payload::text[] as c) t, lateral unnest(%s) as u (%s)',
            handoff_insert_sql.queue || '_updates',
            string_agg(format('%I', c.name), ', ' order by c.position),
            string_agg(format('u.%I', c.name) || case when d.direct then '' else '::' || c.type end, ', ' order by c.position),
            string_agg(format('t.c[%s]::%s[]', o.number, case when d.direct then c.type else 'text' end), ', ' order by c.position),
            string_agg(format('%I', c.name), ', ' order by c.position))
        when bool_and(y.typdelim = ',' and y.typcategory <> 'A')
             and to_regproc(format('pgcombine.%I', handoff_insert_sql.queue || '_enqueue')) is not null
             and not exists (select from pg_constraint k where k.contype = 'c'
                             and k.conrelid = to_regclass(format('pgcombine.%I', handoff_insert_sql.queue || '_updates'))) then
        format('select pgcombine.%I(%s) from (select %s from unnest($1) p (payload), lateral (select p.payload::text[] as c) t) j',
            handoff_insert_sql.queue || '_enqueue',
            string_agg(format('j.c%s::%s[]', o.number, c.type), ', ' order by c.position),
            string_agg(format($join$'{' || string_agg(nullif(btrim(t.c[%1$s], '{}'), ''), ',') || '}' as c%1$s$join$, o.number), ', ' order by c.position))
        end
    from pgcombine.queue_column c
    join pg_type y on y.oid = c.type::regtype
    -- elsewise its elements are read one by one: no arrays of it, or other rules for their text
    cross join lateral (select y.typarray <> 0 and y.typcategory <> 'A' and y.typdelim = ',' and y.typtype = 'b' as direct) d
    cross join lateral (select count(*) as number from pgcombine.queue_column o where o.queue = c.queue and o.position <= c.position) o
    where c.queue = handoff_insert_sql.queue);
end
$$;
