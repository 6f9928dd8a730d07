-- pgcombine.open_combiner(queue, bucket, condition) → refcursor
-- For a queue with Python combiners: takes the updates of the pass that begin_pass prepared out of the bucket and
-- opens the cursor pgcombine_combiner over them, in order of keys, for the worker to put back one update a key, in
-- which each Python column has its final value (made of the old one, too). The pass's statement does the rest.
-- Columns of the cursor: number of the key; the key columns; the Python columns, old and in the update; then, as
-- text, the key columns and the other value columns, folded.
-- Tables written: the bucket's updates. To be called under repeatable read: the statements share a snapshot.
create or replace function pgcombine.open_combiner(queue text, bucket integer, condition text)
returns refcursor
language plpgsql
as $$
declare
    _combiner refcursor := 'pgcombine_combiner';
    _tables constant text[] := pgcombine.bucket_tables(open_combiner.queue, open_combiner.bucket);
    _own constant text := pgcombine.bucket_slice(open_combiner.queue, open_combiner.bucket);
    _c record;
begin
    if current_setting('transaction_isolation') not in ('repeatable read', 'serializable') then
        raise exception 'Python combiners need a transaction under repeatable read';
    end if;
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
                      ', ' order by c.position) filter (where c.combiner is distinct from 'python') as folded
    into _c
    from pgcombine.queue_column c
    where c.queue = open_combiner.queue;
    open _combiner no scroll for execute format(
        'with t as (
             delete from %1$s %2$s returning *
         ), f as (
             select %3$s from %10$s group by %11$s
         )
         select dense_rank() over (order by %4$s), %4$s, %5$s, %6$s
         from t join f on %7$s left join %8$s v on %9$s
         order by 1',
        _tables[1],
        case when _own = '' then open_combiner.condition
             when coalesce(open_combiner.condition, '') = '' then 'where ' || _own
             else open_combiner.condition || ' and ' || _own end,
        _c.folded, _c.keys, _c.python, _c.texts, _c.same_folded, _tables[2], _c.same_value,
        pgcombine.fold_source(open_combiner.queue, 't'), _c.folded_keys);
    return _combiner;
end
$$;
