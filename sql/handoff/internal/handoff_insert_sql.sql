-- pgcombine_internal.handoff_insert_sql(queue) → text
-- Returns the statement that appends the updates of writes to a queue. Its parameter is an array of payloads. A payload
-- is the text of a text[] with one element for each column of the queue, in order. The element is the text of an array
-- of that column's values.
create or replace function pgcombine_internal.handoff_insert_sql(queue text)
returns text
language plpgsql stable
as $$
begin
    return (select format(
            'insert into pgcombine.%I (%s) select %s from unnest($1) p (payload), '
            'lateral (select p.payload::text[] as c) t, lateral unnest(%s) as u (%s)',
            handoff_insert_sql.queue || '_updates', n.names,
            string_agg(format('u.%I', c.name) || case when d.direct then '' else '::' || c.type end, ', '
                order by c.position),
            string_agg(format('t.c[%s]::%s[]', c.position + 1, case when d.direct then c.type else 'text' end), ', '
                       order by c.position),
            n.names)
    from pgcombine.queue_column c
    join pg_type y on y.oid = c.type::regtype
    -- direct: the array is parsed as an array of the column's type. Otherwise, for example for a domain or an array
    -- type, it is parsed as text[], and each element is cast.
    cross join lateral (
        select y.typarray <> 0 and y.typcategory <> 'A' and y.typdelim = ',' and y.typtype = 'b' as direct) d
    cross join pgcombine_internal.column_list(handoff_insert_sql.queue) n (names)
    where c.queue = handoff_insert_sql.queue
    group by n.names);
end
$$;
