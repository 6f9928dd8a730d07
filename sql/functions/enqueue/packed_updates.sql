-- pgcombine.packed_updates(queue, updates [, searched]) → text
-- The select that unpacks packed rows: the updates that such a row carries beyond its own. Null for a queue whose
-- table has no columns for them.
--   updates   the table, or the partition, or what else has its columns
--   searched  conditions on the key pass into it: slower to read whole
create or replace function pgcombine.packed_updates(queue text, updates text, searched boolean default false)
returns text
language sql stable
as $$
    select case when searched
        then format('select m.* from %s as u cross join lateral unnest(%s) as m (%s) where u.pgcombine_packed is not null',
                    packed_updates.updates, string_agg(format('u.pgcombine_%s', c.position), ', ' order by c.position),
                    string_agg(format('%I', c.name), ', ' order by c.position))
        else format('select %s from %s where pgcombine_packed is not null',
                    string_agg(format('unnest(pgcombine_%s) as %I', c.position, c.name), ', ' order by c.position),
                    packed_updates.updates) end
    from pgcombine.queue_column c
    where c.queue = packed_updates.queue and exists (
        select from pg_attribute a
        where a.attrelid = format('pgcombine.%I', c.queue || '_updates')::regclass and a.attname = 'pgcombine_packed')
    having count(*) > 0
$$;
