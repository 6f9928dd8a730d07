-- pgcombine.log_sql(queue, tables, condition) → text
-- Updates as an item of a from clause, one row an update: those in these tables under the condition. It may be about
-- pgcombine_tx and the queue's columns; of a row that holds many updates each is looked at.
create or replace function pgcombine.log_sql(queue text, tables text[], condition text)
returns text
language sql stable
as $$
    select '(' || string_agg(
        format('select %s, pgcombine_tx from %s where %s', c.columns, t.name, log_sql.condition)
        || case when t.place > q.segments then
            format(E'\n    union all\n    select %1$s, pgcombine_tx from (select %2$s, pgcombine_tx from %3$s) as packed where %4$s',
                c.columns, c.packed, t.name, log_sql.condition) else '' end,
        E'\n    union all\n    ' order by t.name) || ') as updates'
    from pgcombine.queue q
    cross join lateral (
        select string_agg(format('%I', c.name), ', ' order by c.position) as columns,
               string_agg(format('unnest(pgcombine_%s) as %I', c.position, c.name), ', ' order by c.position) as packed
        from pgcombine.queue_column c where c.queue = q.queue) c
    cross join lateral (
        select u.name, a.place from unnest(log_sql.tables) u (name)
        cross join lateral (select (regexp_match(u.name, '_s(\d+)"?$'))[1]::integer + 1) a (place)) t
    where q.queue = log_sql.queue
$$;
