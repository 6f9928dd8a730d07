-- pgcombine_internal.recount(queue) → (problem)
-- Compares a queue's values, together with pending and held updates, with a recount of all attached tables in one
-- snapshot.
-- Returns one row with the number of keys that differ and a row for each of the first ten; no row: all keys agree.
-- A key differs if the triggers missed a change of a table (see attach). It also differs if another program enqueues
-- into the queue, or if a table was attached without its existing rows.
-- Values of type real and double precision may differ by a millionth.
-- The mappings run with the caller's rights. So the tables must belong to the caller, to a role whose rights the caller
-- has, to the schema's owner or to a superuser. The caller must be able to read all rows of the tables.
-- Errors: PC001 unknown queue; PC003 no table is attached; 42501 row security hides rows, or a table belongs to another
-- role.
create or replace function pgcombine_internal.recount(queue text)
returns table (problem text)
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(recount.queue);
    _sources constant regclass[] := array(
        select a.source from pgcombine.attachment a join pg_class c on c.oid = a.source
        where a.queue = _queue.queue order by a.id);
    _hidden regclass;
    _parts jsonb;
    _rows text;
    _row record;
begin
    if _sources = '{}' then
        raise exception 'no table is attached to queue "%": there is nothing to recount', _queue.queue
            using errcode = 'PC003', hint = 'leave recount out';
    end if;
    select c.oid::regclass into _hidden
    from pg_class c join pg_roles r on r.oid = c.relowner
    where c.oid = any (_sources)
      and not (r.rolname = current_user or r.rolsuper
               or c.relowner = (select n.nspowner from pg_namespace n where n.nspname = 'pgcombine')
               or pg_has_role(c.relowner, 'usage') and not (select m.rolsuper from pg_roles m where m.rolname = current_user));
    if found then
        raise exception 'the mapping of % is its owner''s and would run with the rights of role "%"', _hidden, current_user
            using errcode = '42501', hint = 'verify as a role that the owner''s code may run as: the owner of the table, who may read the values';
    end if;
    select s into _hidden from unnest(_sources) s where row_security_active(s);
    if found then
        raise exception 'row security hides rows of % from role "%": it can''t be recounted', _hidden, current_user
            using errcode = '42501', hint = 'verify as a role that row security doesn''t bind';
    end if;

    select jsonb_build_object(
        -- a union of columns with different collations has none, and group by needs one
        'keys', pgcombine_internal.column_list(_queue.queue, 'key', '{name}{collate} as {name}'),
        'grouped', pgcombine_internal.column_list(_queue.queue, 'key', 'pgcombine_rows.{name}'),
        'found', pgcombine_internal.column_list(_queue.queue, 'value', '{name} as pgcombine_is_{position}, null::{type} as pgcombine_should_{position}'),
        'recounted', pgcombine_internal.column_list(_queue.queue, 'value', 'null::{type} as pgcombine_is_{position}, {name} as pgcombine_should_{position}'),
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
        select pgcombine_internal.fill(case when pgcombine_internal.base_type(c.type::regtype) in ('real'::regtype, 'double precision'::regtype)
            then '({is} is distinct from {should} and not abs({is} - {should}) <= 1e-6 * greatest(abs({is}), abs({should}), 1))'
            else '{is} is distinct from {should}' end, jsonb_build_object('is', n.found, 'should', n.recounted))) d (condition)
    where c.queue = _queue.queue and c.role = 'value';
    select string_agg(pgcombine_internal.fill('select {keys}, {columns} from {source}', _parts || s.part), ' union all ' order by s.place) into _rows
    from (
        select 1 as place, jsonb_build_object('columns', _parts ->> 'found', 'source', format('pgcombine.%I', _queue.queue || suffix)) as part
        from unnest(array['_values', '_pending', '_quarantine']) suffix
        union all
        select 2, jsonb_build_object('columns', _parts ->> 'recounted', 'source', format('(%s) as pgcombine_source', pgcombine_internal.attached_rows(a, a.source::text)))
        from pgcombine.attachment a join pg_class c on c.oid = a.source
        where a.queue = _queue.queue) s;

    for _row in execute pgcombine_internal.fill(
        'with folded as (
             select {grouped}, {folded} from ({rows}) as pgcombine_rows group by {grouped}
         ), differing as (
             select format(''key %s: %s'', row({grouped}), concat_ws('', '', {sentences})) as sentence,
                    row_number() over (order by {grouped}) as number, count(*) over () as keys
             from folded as pgcombine_rows where {differs}
         )
         select d.sentence, d.number, d.keys from differing d where d.number <= 10 order by d.number', _parts || jsonb_build_object('rows', _rows))
    loop
        if _row.number = 1 then
            problem := format('%s %s from a recount of %s: a change that no trigger saw, or somebody else''s updates',
                _row.keys, case _row.keys when 1 then 'key differs' else 'keys differ' end, array_to_string(_sources, ', '));
            return next;
        end if;
        problem := _row.sentence;
        return next;
    end loop;
end
$$;
