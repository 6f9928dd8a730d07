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
    _c record;
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

    select string_agg(format('%I', c.name), ', ' order by c.position) as columns,
           -- a union of columns with different collations has none, and group by needs one
           string_agg(format('%1$I%2$s as %1$I', c.name, ' collate ' || c.collation), ', ' order by c.position)
               filter (where c.role = 'key') as keys,
           string_agg(format('pgcombine_rows.%I', c.name), ', ' order by c.position) filter (where c.role = 'key') as grouped,
           string_agg(format('%I as pgcombine_is_%s, null::%s as pgcombine_should_%2$s', c.name, c.position, c.type), ', '
                      order by c.position) filter (where c.role = 'value') as found,
           string_agg(format('null::%s as pgcombine_is_%s, %I as pgcombine_should_%2$s', c.type, c.position, c.name), ', '
                      order by c.position) filter (where c.role = 'value') as recounted,
           string_agg(format('coalesce(%s, ''0'') as pgcombine_is_%s, coalesce(%s, ''0'') as pgcombine_should_%2$s',
                             format(k.fold, 'pgcombine_is_' || c.position, null, c.type), c.position,
                             format(k.fold, 'pgcombine_should_' || c.position, null, c.type)), ', '
                      order by c.position) filter (where c.role = 'value') as folded,
           string_agg(d.condition, ' or ' order by c.position) filter (where c.role = 'value') as differs,
           string_agg(format('case when %s then format(''%%s is %%s, recounted %%s'', %L, pgcombine_is_%s, pgcombine_should_%3$s) end',
                             d.condition, c.name, c.position), ', ' order by c.position) filter (where c.role = 'value') as sentences
    into _c
    from pgcombine.queue_column c
    left join pgcombine.combiner k using (combiner)
    cross join lateral (
        select format(case when pgcombine_internal.base_type(c.type::regtype) in ('real'::regtype, 'double precision'::regtype)
            then '(pgcombine_is_%1$s is distinct from pgcombine_should_%1$s and not abs(pgcombine_is_%1$s - pgcombine_should_%1$s)'
                 || ' <= 1e-6 * greatest(abs(pgcombine_is_%1$s), abs(pgcombine_should_%1$s), 1))'
            else 'pgcombine_is_%1$s is distinct from pgcombine_should_%1$s' end, c.position) as condition) d
    where c.queue = _queue.queue;
    select string_agg(format('select %s, %s from (%s) as pgcombine_source', _c.keys, _c.recounted,
                             pgcombine_internal.attached_rows(a, a.source::text)), ' union all ')
    into _rows
    from pgcombine.attachment a join pg_class s on s.oid = a.source
    where a.queue = _queue.queue;

    for _row in execute format(
        'with folded as (
             select %1$s, %2$s from (%3$s) as pgcombine_rows group by %1$s
         ), differing as (
             select format(''key %%s: %%s'', row(%4$s), concat_ws('', '', %5$s)) as sentence,
                    row_number() over (order by %4$s) as number, count(*) over () as keys
             from folded as pgcombine_rows where %6$s
         )
         select d.sentence, d.number, d.keys from differing d where d.number <= 10 order by d.number',
        _c.grouped, _c.folded,
        (select string_agg(format('select %s, %s from pgcombine.%I', _c.keys, _c.found, _queue.queue || s), ' union all ')
         from unnest(array['_values', '_pending', '_quarantine']) s) || ' union all ' || _rows,
        _c.grouped, _c.sentences, _c.differs)
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
