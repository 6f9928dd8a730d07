-- pgcombine.generate_pass(queue, observed) → text
-- The statement that a pass over a bucket of the queue runs, as plan_sql fills it in. %1$s stands for the updates, %2$s for
-- the bucket's values, %3$s for more to return, %4$s and %5$s for what a pass over few updates adds, %6$s and %7$s for what
-- is done with the updates of quarantined keys, and how many they are. observed: whether the observers are part of it.
-- One statement, one snapshot: fold the updates by key, join the old values, write the new ones, hand the changes to the
-- observers, count.
-- Rows are written in the order in which they lie in the table and in its index, so that many meet each page once.
-- They are written by ctid: if a rival pass has changed them since the snapshot, PostgreSQL raises 40001
-- under repeatable read, also where the rival deleted the row (an upsert would silently insert it again).
create or replace function pgcombine.generate_pass(queue text, observed boolean)
returns text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(generate_pass.queue);
    _observers text := '';
    _observed text := '';
    _c record; -- the parts of the statement that follow from the columns
begin
    select string_agg(format('%I', c.name), ', ' order by c.position)
               filter (where c.role = 'key') as keys,
           string_agg(format('u.%I', c.name), ', ' order by c.position)
               filter (where c.role = 'key') as folded_keys,
           string_agg(format('v.%1$I %2$s u.%1$I', c.name, pgcombine.operator_name(pgcombine.type_operator(c.type::regtype, 3))),
                      ' and ' order by c.position)
               filter (where c.role = 'key') as same_key,
           string_agg(format('%I', c.name), ', ' order by c.position)
               filter (where c.role = 'value') as new_values,
           string_agg(format('%s as %I', pgcombine.fold_expression(c), c.name), ', ' order by c.position)
               filter (where c.role = 'value') as fold,
           string_agg(format('v.%I as %I', c.name, 'old_' || c.name), ', ' order by c.position)
               filter (where c.role = 'value') as old_values,
           string_agg(format('%s as %I', pgcombine.merge_expression(c, 'v', 'u'), c.name), ', ' order by c.position)
               filter (where c.role = 'value') as merge,
           string_agg(format('%I', 'old_' || c.name), ', ' order by c.position)
               filter (where c.role = 'value') as change_old,
           string_agg(format('case when not pgcombine_gone then %I end as %I', c.name, 'new_' || c.name), ', ' order by c.position)
               filter (where c.role = 'value') as change_new,
           string_agg(pgcombine.differ_expression(c.type, quote_ident('old_' || c.name), quote_ident('new_' || c.name)), ' or ' order by c.position)
               filter (where c.role = 'value') as changed,
           string_agg(format('%1$I = c.%1$I', c.name), ', ' order by c.position)
               filter (where c.role = 'value') as assign,
           string_agg(pgcombine.differ_expression(c.type, format('c.%I', 'old_' || c.name), format('c.%I', c.name)), ' or ' order by c.position)
               filter (where c.role = 'value') as differs
    into _c
    from pgcombine.queue_column c
    where c.queue = _queue.queue;

    -- an observer that reads (select my_function(…) from changes) runs only if its rows are asked for
    select coalesce(string_agg(format(E', observer_%s as materialized ( -- %s\n%s\n)', o.number,
               regexp_replace(o.observer, '[\n\r]', ' ', 'g'), o.statement), '' order by o.number), ''),
           coalesce(string_agg(format(E',\n       (select count(*) from observer_%s) as observer_%1$s', o.number), '' order by o.number)
               filter (where o.reads), '')
    into _observers, _observed
    from (
        select row_number() over (order by o.position) as number, o.observer, o.statement,
               pgcombine.reads(o.statement) as reads
        from pgcombine.observer o
        where o.queue = _queue.queue and o.language = 'sql' and generate_pass.observed
    ) o;

    return format(
$pass$with %%6$sfolded as (
    select %1$s, %3$s, count(*) as pgcombine_updates
    from %16$s
    group by %1$s
), combined as (
    select new.*, (%4$s) is true as pgcombine_gone
    from (
        select %5$s, v.pgcombine_row, u.pgcombine_updates, %6$s, %7$s
        from folded u left join lateral (
            select v.ctid as pgcombine_row, v.* from %%2$s v where %8$s%%4$s
        ) v on true
    ) as new
), removed as (
    delete from %%2$s v using combined c
    where v.ctid = c.pgcombine_row and c.pgcombine_gone%%5$s
), updated as (
    update %%2$s v set %9$s
    from (
        select * from combined c
        where not c.pgcombine_gone and (%10$s)%%5$s
        order by c.pgcombine_row
    ) c
    where v.ctid = c.pgcombine_row
), inserted as (
    insert into %%2$s (%1$s, %2$s)
    select %1$s, %2$s from combined c where c.pgcombine_row is null and not c.pgcombine_gone
    order by %1$s
    on conflict do nothing
), changes as (
    select *
    from (select %1$s, %11$s, %12$s from combined) as change
    where %13$s
)%14$s
select coalesce((select sum(pgcombine_updates) from folded), 0)::bigint as updates,
       (select count(*) from folded) as keys,
       (select count(*) from changes) as changes%%7$s%15$s%%3$s$pass$,
        replace(_c.keys, '%', '%%'),
        replace(_c.new_values, '%', '%%'),
        replace(_c.fold, '%', '%%'),
        replace(pgcombine.gone_when(_queue.queue), '%', '%%'),
        replace(_c.folded_keys, '%', '%%'),
        replace(_c.old_values, '%', '%%'),
        replace(_c.merge, '%', '%%'),
        replace(_c.same_key, '%', '%%'),
        replace(_c.assign, '%', '%%'),
        replace(_c.differs, '%', '%%'),
        replace(_c.change_old, '%', '%%'),
        replace(_c.change_new, '%', '%%'),
        replace(_c.changed, '%', '%%'),
        replace(_observers, '%', '%%'),
        replace(_observed, '%', '%%'),
        replace(replace(pgcombine.fold_source(_queue.queue, chr(1)), '%', '%%'), chr(1), '%1$s'));
end
$$;
