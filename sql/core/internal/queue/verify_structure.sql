-- pgcombine_internal.verify_structure(queue) → (problem, ends)
-- The part of verify that reads only the catalog. The function finds wrong buckets, missing tables and views, columns
-- of <queue>_updates and <queue>_values that differ from the queue's definition, and triggers that are missing or
-- disabled.
--   ends  whether the problem rules out further checks
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.verify_structure(queue text, out problem text, out ends boolean)
returns setof record
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
begin
    return query
    select format('bucket %s is missing in pgcombine.bucket: its updates are never combined', n), false
    from generate_series(0, _queue.buckets - 1) n
    where not exists (select from pgcombine.bucket b where b.queue = _queue.queue and b.bucket = n)
    union all
    select format('bucket %s is in pgcombine.bucket, but the queue has %s buckets', b.bucket, _queue.buckets), false
    from pgcombine.bucket b where b.queue = _queue.queue and b.bucket not between 0 and _queue.buckets - 1
    union all
    select format('relation pgcombine.%I is missing', _queue.queue || s), s in ('_updates', '_values')
    from unnest(array['_updates', '_values', '_pending', '_current', '_quarantine', '_quarantine_keys']) s
    where to_regclass(format('pgcombine.%I', _queue.queue || s)) is null
    union all
    select format('column "%s" of %s: it is %s, and should be %s', c.name, t.relation,
                  coalesce(pgcombine_internal.type_name(a.atttypid, a.atttypmod), 'missing'), c.type), true
    from pgcombine.queue_column c
    cross join unnest(array['_updates', '_values']) e
    cross join to_regclass(format('pgcombine.%I', _queue.queue || e)) t (relation)
    left join pg_attribute a on a.attrelid = t.relation and a.attname = c.name and a.attnum > 0 and not a.attisdropped
    where c.queue = _queue.queue and t.relation is not null
      and pgcombine_internal.type_name(a.atttypid, a.atttypmod) is distinct from c.type
      and (e, a.atttypid) is distinct from ('_updates', 'pgcombine.key_text'::regtype::oid)
    union all
    select format('trigger %s of pgcombine.%I is %s', t.name, t.relation,
                  case when g.oid is null then 'missing' else 'disabled' end), false
    from (values ('pgcombine_wake', _queue.queue || '_updates', true),
                 ('pgcombine_limit', _queue.queue || '_updates', _queue.max_backlog is not null),
                 ('pgcombine_values', _queue.queue || '_values', true)) t (name, relation, needed)
    left join pg_trigger g on g.tgname = t.name and g.tgrelid = to_regclass(format('pgcombine.%I', t.relation))
    where t.needed and coalesce(g.tgenabled, 'D') = 'D' and to_regclass(format('pgcombine.%I', t.relation)) is not null;
end
$$;
