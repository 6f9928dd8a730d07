-- pgcombine.verify(queue [, recount]) → (problem)
-- Checks a whole queue and returns its problems; no row: there is none. It reads one snapshot, so passes and enqueues
-- may go on.
--   recount  whether to compare the values with the attached tables, too (see recount)
-- Errors: PC001 unknown queue; those of recount.
create or replace function pgcombine.verify(queue text, recount boolean default false)
returns table (problem text)
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(verify.queue);
    _updates constant text := format('pgcombine.%I', _queue.queue || '_updates');
    _missing text[];
    _parent text;
    _partition record;
begin
    return query
    select format('bucket %s is missing in pgcombine.bucket: its updates are never combined', n)
    from generate_series(0, _queue.buckets - 1) n
    where not exists (select from pgcombine.bucket b where b.queue = _queue.queue and b.bucket = n);
    return query
    select format('bucket %s is in pgcombine.bucket, but the queue has %s buckets', b.bucket, _queue.buckets)
    from pgcombine.bucket b where b.queue = _queue.queue and b.bucket not between 0 and _queue.buckets - 1;
    _missing := array(
        select s from unnest(array['_updates', '_values', '_pending', '_current', '_quarantine', '_quarantine_keys']) s
        where to_regclass(format('pgcombine.%I', _queue.queue || s)) is null);
    return query select format('relation pgcombine.%I is missing', _queue.queue || s) from unnest(_missing) s;
    if _missing && array['_updates', '_values'] then
        return;
    end if;

    foreach _parent in array array[_updates, format('pgcombine.%I', _queue.queue || '_values')] loop
        return query
        select format('column "%s" of %s: it is %s, and should be %s', c.name, _parent::regclass,
                      coalesce(pgcombine_internal.type_name(a.atttypid, a.atttypmod), 'missing'), c.type)
        from pgcombine.queue_column c
        left join pg_attribute a on a.attrelid = _parent::regclass and a.attname = c.name and a.attnum > 0 and not a.attisdropped
        where c.queue = _queue.queue and pgcombine_internal.type_name(a.atttypid, a.atttypmod) is distinct from c.type
          and (_parent, a.atttypid) is distinct from (_updates, 'pgcombine.key_text'::regtype);
        if found then
            return;
        end if;
        return query
        select format('%s has %s partitions instead of %s', _parent::regclass, count(*), _queue.partitions)
        from pg_inherits i where i.inhparent = _parent::regclass having count(*) <> _queue.partitions;
        for _partition in
            select n as number, c.name, pg_get_expr(i.relpartbound, i.oid) as bound,
                   format('FOR VALUES WITH (modulus %s, remainder %s)', _queue.partitions, n) as wanted
            from generate_series(0, _queue.partitions - 1) n
            cross join lateral (select (pgcombine_internal.partition_tables(_queue.queue, n))[case _parent when _updates then 1 else 2 end]) c (name)
            left join pg_class i on i.oid = (select h.inhrelid from pg_inherits h where h.inhrelid = to_regclass(c.name) and h.inhparent = _parent::regclass)
        loop
            if _partition.bound is distinct from _partition.wanted then
                problem := format('partition %s of %s is %s', _partition.number, _parent::regclass, coalesce(_partition.bound, 'missing'));
                return next;
            else
                return query execute format('select format(''%%s holds %%s rows of keys that belong elsewhere'', $1, count(*)) from %s
                    where not satisfies_hash_partition($2, %s, %s, %s) having count(*) > 0', _partition.name, _queue.partitions, _partition.number,
                    pgcombine_internal.column_list(_queue.queue, 'key'))
                using _partition.name::regclass, _parent::regclass::oid;
            end if;
        end loop;
    end loop;

    return query select * from pgcombine_internal.verify_log(_queue.queue);
    return query execute format('select format(''%%s keys have values for which delete_when (%%s) holds'', count(*), $1) from pgcombine.%I
        where %s having count(*) > 0', _queue.queue || '_values', coalesce(_queue.delete_when, 'false'))
    using _queue.delete_when;
    return query
    select format('trigger %s of pgcombine.%I is %s', t.name, _queue.queue || '_updates',
                  case when g.oid is null then 'missing' else 'disabled' end)
    from (values ('pgcombine_wake', true), ('pgcombine_limit', _queue.max_backlog is not null)) t (name, needed)
    left join pg_trigger g on g.tgname = t.name and g.tgrelid = _updates::regclass
    where t.needed and coalesce(g.tgenabled, 'D') = 'D';
    if not exists (select from generate_series(0, _queue.partitions - 1) p, unnest(pgcombine_internal.segment_tables(_queue.queue, p)) s
                   where to_regclass(s) is null) then
        return query select * from pgcombine_internal.verify_generated(_queue.queue);
    end if;
    if not _missing && array['_quarantine', '_quarantine_keys'] then
        return query select * from pgcombine_internal.verify_quarantine(_queue.queue);
    end if;
    return query
    select format('trigger %s of the attached table %s is %s: select pgcombine.regenerate(%L)%s', t.name, t.relation, t.state, _queue.queue,
                  case t.state when 'disabled' then ', after alter table … enable trigger' else '' end)
    from pgcombine.attachment a cross join lateral pgcombine_internal.attached_triggers(a.id) t
    where a.queue = _queue.queue and t.state is not null;
    if verify.recount then
        return query select r.problem from pgcombine_internal.recount(_queue.queue) r;
    end if;
end
$$;
