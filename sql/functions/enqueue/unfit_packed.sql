-- pgcombine.unfit_packed(queue) → text
-- The conditions that hold for packed rows whose arrays can't be updates: they are of different lengths, or hold keys
-- that are null or too long. Null: as packed_updates.
-- Nothing refuses such a row when it is written: a trigger for each row, and a check of the table as well, cost a plain
-- insert of a hundred rows a fifth of its time, since each statement prepares their condition for each partition.
create or replace function pgcombine.unfit_packed(queue text, out lengths text, out keys text)
language sql stable
as $$
    select format('(cardinality(pgcombine_0) > 0 and cardinality(pgcombine_0) = all (array[%s])) is not true',
               string_agg(format('cardinality(pgcombine_%s)', c.position), ', ' order by c.position)),
           concat_ws(' or ',
               string_agg(format('num_nulls(variadic pgcombine_%s) > 0', c.position), ' or ' order by c.position) filter (where c.role = 'key'),
               -- short arrays that aren't compressed hold no long key
               format('(%s) and exists (select from unnest(%s) as m (%s) where ',
                   string_agg(format('pg_column_size(pgcombine_%s)', c.position), ' + ' order by c.position) filter (where c.role = 'key')
                       || ' > 2600' || string_agg(format(' or pg_column_compression(pgcombine_%s) is not null', c.position), '') filter (where c.role = 'key'),
                   string_agg(format('pgcombine_%s', c.position), ', ' order by c.position) filter (where c.role = 'key'),
                   string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'))
                   || pgcombine.key_size(unfit_packed.queue, 'm.') || ' > 2600)')
    from pgcombine.queue_column c
    where c.queue = unfit_packed.queue
    having pgcombine.packed_updates(unfit_packed.queue, '') is not null
$$;
