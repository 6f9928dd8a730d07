-- pgcombine.open_combiner(plan [, source]) → refcursor
-- For a queue with Python combiners: opens the cursor pgcombine_combiner over the updates of a planned pass, in order of
-- keys, and makes the temporary table pgcombine_combined. The worker writes one update a key into it, in which each Python
-- column has its final value (made of the old one, too); then it is the source of the pass's statement.
-- Columns of the cursor: number of the key; the key columns; the Python columns, old and in the update; then, as
-- text, the key columns and the other value columns, folded.
--   source  as plan_sql takes it
-- To be called under repeatable read: the statements share a snapshot.
create or replace function pgcombine.open_combiner(plan pgcombine.plan, source text default null)
returns refcursor
language plpgsql
as $$
declare
    _combiner refcursor := 'pgcombine_combiner';
    _queue constant text := (open_combiner.plan).queue;
    _log constant text := coalesce(open_combiner.source, pgcombine.log_sql(_queue, (open_combiner.plan).tables, (open_combiner.plan).condition)
        || case when (open_combiner.plan).held then ' where ' || pgcombine.not_held(_queue) else '' end);
    _c record;
begin
    if current_setting('transaction_isolation') not in ('repeatable read', 'serializable') then
        raise exception 'Python combiners need a transaction under repeatable read';
    end if;
    perform pgcombine.require_temporary();
    select string_agg(format('t.%I', c.name), ', ' order by c.position) filter (where c.role = 'key') as keys,
           string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key') as folded_keys,
           string_agg(format('t.%1$I %2$s f.%1$I', c.name, pgcombine.operator_name(pgcombine.type_operator(c.type::regtype, 3))),
                      ' and ' order by c.position) filter (where c.role = 'key') as same_folded,
           string_agg(format('t.%1$I %2$s v.%1$I', c.name, pgcombine.operator_name(pgcombine.type_operator(c.type::regtype, 3))),
                      ' and ' order by c.position) filter (where c.role = 'key') as same_value,
           string_agg(format('v.%1$I, t.%1$I', c.name), ', ' order by c.position) filter (where c.combiner = 'python') as python,
           string_agg(format('f.%I::text', c.name), ', ' order by c.role = 'value', c.position)
               filter (where c.combiner is distinct from 'python') as texts,
           string_agg(case when c.role = 'key' then format('%I', c.name)
                           else format('%s as %I', pgcombine.fold_expression(c), c.name) end,
                      ', ' order by c.position) filter (where c.combiner is distinct from 'python') as folded,
           string_agg(format('%I', c.name), ', ' order by c.position) as columns
    into _c
    from pgcombine.queue_column c
    where c.queue = _queue;
    if to_regclass('pg_temp.pgcombine_combined') is not null then
        drop table pg_temp.pgcombine_combined;
    end if;
    execute format('create temporary table pgcombine_combined on commit drop as select %s from pgcombine.%I where false',
        _c.columns, _queue || '_values');
    open _combiner no scroll for execute format(
        'with t as materialized (
             select * from %1$s
         ), f as (
             select %2$s from %3$s group by %4$s
         )
         select dense_rank() over (order by %5$s), %5$s, %6$s, %7$s
         from t join f on %8$s left join %9$s v on %10$s
         order by 1',
        _log, _c.folded, pgcombine.fold_source(_queue, 't'), _c.folded_keys, _c.keys, _c.python, _c.texts, _c.same_folded,
        (pgcombine.bucket_tables(_queue, (open_combiner.plan).bucket))[2], _c.same_value);
    return _combiner;
end
$$;
