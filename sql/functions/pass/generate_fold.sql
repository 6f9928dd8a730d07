-- pgcombine.generate_fold(queue) → text
-- The statement that folds part of a large backlog: it takes %2$s of the updates in %1$s (under the condition
-- %3$s; empty: any), combines them among themselves and puts the result back as fewer updates. Values and
-- observers don't see it. The row of the bucket (%4$s) tells that updates were written anew, and how old they are.
create or replace function pgcombine.generate_fold(queue text)
returns text
language plpgsql stable
as $$
declare
    _unpacked constant text := pgcombine.packed_updates(generate_fold.queue, 'taken');
    _keys text;
    _values text;
    _fold text;
    _source text := 'taken';
begin
    select string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'),
           string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'value'),
           string_agg(format('%s as %I', pgcombine.fold_expression(c), c.name), ', ' order by c.position)
               filter (where c.role = 'value')
    into _keys, _values, _fold
    from pgcombine.queue_column c
    where c.queue = generate_fold.queue;
    if _unpacked is not null then
        _source := format('(select %s, %s from taken union all %s) as taken', _keys, _values, _unpacked);
    end if;
    return format(
$fold$with taken as (
    delete from %%1$s where ctid = any (array(select ctid from %%1$s %%3$s limit %%2$s)) returning *, age(xmin) as pgcombine_age
), folded as (
    select %1$s, %3$s
    from %5$s
    group by %1$s
), put_back as (
    insert into %%1$s (%1$s, %2$s) select %1$s, %2$s from folded
), noted as (
    update pgcombine.bucket
    set moves = moves + 1,
        since = least(since, coalesce(pgcombine.time_of((select max(pgcombine_age) from taken)), clock_timestamp()))
    where queue = %4$L and bucket = %%4$s
)
select (select count(*) from %6$s) - (select count(*) from folded) as updates,
       (select count(*) from folded) as keys,
       0::bigint as changes$fold$,
        replace(_keys, '%', '%%'), replace(_values, '%', '%%'), replace(_fold, '%', '%%'), generate_fold.queue,
        replace(pgcombine.fold_source(generate_fold.queue, _source), '%', '%%'), _source);
end
$$;
