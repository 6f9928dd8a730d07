-- pgcombine.verify(queue [, recount]) → (problem)
-- Reads a whole queue and tells what isn't as it must be; no row: all is well. It sees one snapshot, so passes and
-- enqueues may go on.
--   recount  whether to compare the values with the attached tables as well: see recount
-- Errors: PC001 unknown queue; PC003 no table is attached that could be recounted.
create or replace function pgcombine.verify(queue text, recount boolean default false)
returns table (problem text)
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(verify.queue);
    _parent regclass;
    _child regclass;
    _number integer;
    _bound text;
    _keys text;
    _count bigint;
    _kind text;
begin
    return query
    select format('bucket %s is missing in pgcombine.bucket: its updates are never combined', n)
    from generate_series(0, _queue.buckets - 1) n
    where not exists (select from pgcombine.bucket b where b.queue = _queue.queue and b.bucket = n);
    return query
    select format('bucket %s is in pgcombine.bucket, but the queue has %s buckets', b.bucket, _queue.buckets)
    from pgcombine.bucket b where b.queue = _queue.queue and b.bucket not between 0 and _queue.buckets - 1;
    return query
    select format('relation pgcombine.%s is missing', r.name)
    from unnest(array['_updates', '_values', '_pending', '_current', '_quarantine', '_quarantine_keys']) s (suffix), format('%I', _queue.queue || s.suffix) r (name)
    where to_regclass('pgcombine.' || r.name) is null;
    if to_regclass(format('pgcombine.%I', _queue.queue || '_updates')) is null
       or to_regclass(format('pgcombine.%I', _queue.queue || '_values')) is null then
        return;
    end if;

    select string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key')
    into _keys
    from pgcombine.queue_column c where c.queue = _queue.queue;
    foreach _kind in array array['updates', 'values'] loop
        _parent := format('pgcombine.%I', _queue.queue || '_' || _kind);
        return query
        select format('column "%s" of %s: it is %s, and should be %s', c.name, _parent,
                      coalesce(pgcombine.type_name(a.atttypid, a.atttypmod), 'missing'), c.type)
        from pgcombine.queue_column c
        left join pg_attribute a on a.attrelid = _parent and a.attname = c.name and a.attnum > 0 and not a.attisdropped
        where c.queue = _queue.queue and pgcombine.type_name(a.atttypid, a.atttypmod) is distinct from c.type
          and (_kind, a.atttypid) is distinct from ('updates', 'pgcombine.key_text'::regtype);
        if found then
            return;
        end if;
        select count(*) into _count from pg_inherits i where i.inhparent = _parent;
        if _count <> _queue.partitions then
            problem := format('%s has %s partitions instead of %s', _parent, _count, _queue.partitions);
            return next;
        end if;
        for _number in 0 .. _queue.partitions - 1 loop
            _child := to_regclass((pgcombine.partition_tables(_queue.queue, _number))[case _kind when 'updates' then 1 else 2 end]);
            select pg_get_expr(c.relpartbound, c.oid) into _bound
            from pg_class c join pg_inherits i on i.inhrelid = c.oid
            where c.oid = _child and i.inhparent = _parent;
            if _bound is distinct from format('FOR VALUES WITH (modulus %s, remainder %s)', _queue.partitions, _number) then
                problem := format('partition %s of %s is %s', _number, _parent, coalesce(_bound, 'missing'));
                return next;
            else
                execute format('select count(*) from %s where not satisfies_hash_partition(%s::oid, %s, %s, %s)',
                    _child, _parent::oid, _queue.partitions, _number, _keys) into _count;
                if _count > 0 then
                    problem := format('%s holds %s rows of keys that belong elsewhere', _child, _count);
                    return next;
                end if;
            end if;
        end loop;
    end loop;

    return query select v.problem from pgcombine.verify_log(_queue.queue) v (problem);
    if _queue.delete_when is not null then
        execute format('select count(*) from pgcombine.%I where %s', _queue.queue || '_values', _queue.delete_when) into _count;
        if _count > 0 then
            problem := format('%s keys have values for which delete_when (%s) holds', _count, _queue.delete_when);
            return next;
        end if;
    end if;
    return query
    select format('trigger %s of pgcombine.%I is %s', t.name, _queue.queue || '_updates',
                  case when g.oid is null then 'missing' else 'disabled' end)
    from (values ('pgcombine_wake', true), ('pgcombine_limit', _queue.max_backlog is not null)) t (name, needed)
    left join pg_trigger g on g.tgname = t.name and g.tgrelid = format('pgcombine.%I', _queue.queue || '_updates')::regclass
    where t.needed and coalesce(g.tgenabled, 'D') = 'D';
    if not exists (select from generate_series(0, _queue.partitions - 1) p, unnest(pgcombine.segment_tables(_queue.queue, p)) s
                   where to_regclass(s) is null) then
        return query select v.problem from pgcombine.verify_generated(_queue.queue) v (problem);
    end if;
    if to_regclass(format('pgcombine.%I', _queue.queue || '_quarantine')) is not null
       and to_regclass(format('pgcombine.%I', _queue.queue || '_quarantine_keys')) is not null then
        return query select v.problem from pgcombine.verify_quarantine(_queue.queue) v (problem);
    end if;
    return query
    select format('trigger %s of the attached table %s is %s: select pgcombine.regenerate(%L)%s', t.name, t.relation, t.state, _queue.queue,
                  case t.state when 'disabled' then ', after alter table … enable trigger' else '' end)
    from pgcombine.attachment a cross join lateral pgcombine.attached_triggers(a.id) t
    where a.queue = _queue.queue and t.state is not null;
    if verify.recount then
        return query select r.problem from pgcombine.recount(_queue.queue) r;
    end if;
end
$$;
