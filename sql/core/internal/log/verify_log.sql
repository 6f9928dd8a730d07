-- pgcombine_internal.verify_log(queue) → problems
-- The part of verify that checks the segments, their rows and the journal. In a copied database in which
-- post_restore has not run, the function doesn't compare ids with the server's, since the ids come from another
-- database.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.verify_log(queue text)
returns setof text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(verify_log.queue);
    _next constant bigint :=
        case when pgcombine_internal.own_cluster() then txid_snapshot_xmax(txid_current_snapshot()) end;
    _segment text;
    _number bigint;
begin
    for _segment, _number in
        select s.name, s.place - 1
        from generate_series(0, _queue.partitions - 1) p
        cross join lateral unnest(pgcombine_internal.segment_tables(_queue.queue, p)) with ordinality s (name, place)
    loop
        if not exists (select from pg_partition_tree(to_regclass(format('pgcombine.%I', _queue.queue || '_updates'))) p
                       where p.relid = to_regclass(_segment)) then
            return next format('segment %s is missing: updates that belong in it can''t be enqueued', _segment);
            continue;
        end if;
        return query execute format($check$
            select format(p.problem, $1, p.count)
            from (select count(*) filter (where (pgcombine_tx >> %s) & %s <> %s),
                         count(*) filter (where pgcombine_tx >= %L
                                            and pgcombine_tx is distinct from txid_current_if_assigned())
                  from %s) c (misplaced, foreigners)
            cross join lateral (values
                (c.misplaced, '%%s holds %%s rows of ids that belong in another segment'),
                (c.foreigners, '%%s holds %%s rows of ids that no transaction of this database has had: '
                               'they are combined twice, or never')) p (count, problem)
            where p.count > 0$check$,
            _queue.segment_bits, _queue.segments - 1, _number, _next, _segment)
        using _segment;
    end loop;
    return query
    select format('bucket %s has no mark in pgcombine.pass: no pass over it can run', b.bucket)
    from pgcombine.bucket b
    where b.queue = _queue.queue
      and not exists (select from pgcombine.pass p where p.queue = b.queue and p.bucket = b.bucket
          and p.range_mask is null);
    return query
    select format('the journal of bucket %s lacks %s passes: updates that they took may be combined twice',
                  j.bucket, j.lacking)
    from (select p.bucket, max(p.pass) - min(p.pass) + 1 - count(*) as lacking
          from pgcombine.pass p where p.queue = _queue.queue group by p.bucket) j
    where j.lacking > 0;
    return query
    select format('bucket %s has a mark that sees ids which no transaction has had yet: '
                  'updates with these ids are never combined', p.bucket)
    from pgcombine.pass p
    where p.queue = _queue.queue and pg_snapshot_xmax(p.mark)::text::bigint > _next
    group by p.bucket;
end
$$;
