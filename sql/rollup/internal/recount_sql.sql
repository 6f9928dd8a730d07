-- pgcombine_internal.recount_sql(queue) → text
-- Returns the query of recount: for each of the first ten keys that differ a sentence, its number, and the number of
-- all keys that differ.
create or replace function pgcombine_internal.recount_sql(queue text)
returns text
language plpgsql stable
as $$
declare
    _parts jsonb;
    _rows text;
begin
    select jsonb_build_object(
        -- a union of columns with different collations has none, and group by needs one
        'keys', pgcombine_internal.column_list(recount_sql.queue, 'key', '{name}{collate} as {name}'),
        'grouped', pgcombine_internal.column_list(recount_sql.queue, 'key', 'pgcombine_rows.{name}'),
        'found', pgcombine_internal.column_list(recount_sql.queue, 'value',
            '{name} as pgcombine_is_{position}, null::{type} as pgcombine_should_{position}'),
        'recounted', pgcombine_internal.column_list(recount_sql.queue, 'value',
            'null::{type} as pgcombine_is_{position}, {name} as pgcombine_should_{position}'),
        'folded', string_agg(format('coalesce(%s, ''0'') as %s, coalesce(%s, ''0'') as %s',
            pgcombine_internal.expand(k.fold, n.found, null, c.type), n.found,
            pgcombine_internal.expand(k.fold, n.recounted, null, c.type), n.recounted), ', ' order by c.position),
        'differs', string_agg(d.condition, ' or ' order by c.position),
        'sentences', string_agg(format('case when %s then format(''%%s is %%s, recounted %%s'', %L, %s, %s) end',
            d.condition, c.name, n.found, n.recounted), ', ' order by c.position))
    into _parts
    from pgcombine.queue_column c
    left join pgcombine.combiner k using (combiner)
    cross join lateral (select 'pgcombine_is_' || c.position, 'pgcombine_should_' || c.position) n (found, recounted)
    cross join lateral (
        select pgcombine_internal.fill(case
            when pgcombine_internal.base_type(c.type::regtype) in ('real'::regtype, 'double precision'::regtype)
            then '({is} is distinct from {should} and not abs({is} - {should}) <= 1e-6 * greatest(abs({is}), '
                'abs({should}), 1))'
            else '{is} is distinct from {should}' end,
                jsonb_build_object('is', n.found, 'should', n.recounted))) d (condition)
    where c.queue = recount_sql.queue and c.role = 'value';
    -- a key that has expired by the recount may be gone from the values already
    select _parts || jsonb_build_object('kept', case when q.expire_when is not null then
        format(' and (select (%s) is not true from (select %s, %s) as pgcombine_expired)', q.expire_when,
            pgcombine_internal.column_list(q.queue, 'key', 'pgcombine_rows.{name} as {name}'),
            pgcombine_internal.column_list(q.queue, 'value', 'pgcombine_should_{position} as {name}')) end)
    into _parts
    from pgcombine.queue q where q.queue = recount_sql.queue;
    select string_agg(pgcombine_internal.fill('select {keys}, {columns} from {source}', _parts || s.part), ' union all '
        order by s.place) into _rows
    from (
        select 1 as place, jsonb_build_object('columns', _parts ->> 'found',
            'source', format('pgcombine.%I', recount_sql.queue || suffix)) as part
        from unnest(array['_values', '_pending', '_quarantine']) suffix
        union all
        select 2, jsonb_build_object('columns', _parts ->> 'recounted',
            'source', format('(%s) as pgcombine_source', pgcombine_internal.attached_rows(a, a.source::text)))
        from pgcombine.attachment a join pg_class c on c.oid = a.source
        where a.queue = recount_sql.queue) s;

    return pgcombine_internal.fill(
        'with folded as (
             select {grouped}, {folded} from ({rows}) as pgcombine_rows group by {grouped}
         ), differing as (
             select format(''key %s: %s'', row({grouped}), concat_ws('', '', {sentences})) as sentence,
                    row_number() over (order by {grouped}) as number, count(*) over () as keys
             from folded as pgcombine_rows where ({differs}){kept}
         )
         select d.sentence, d.number, d.keys from differing d where d.number <= 10 order by d.number',
             _parts || jsonb_build_object('rows', _rows));
end
$$;
