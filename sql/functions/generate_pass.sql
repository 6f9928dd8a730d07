-- pgcombine.generate_pass(queue) → text
-- The statement that a pass over a bucket of the queue runs; %1$s and %2$s stand for the bucket's updates and
-- values. One statement, one snapshot: take the updates, fold them by key, join the old values, write, count.
-- Rows are written by ctid: if a rival pass has changed them since the snapshot, PostgreSQL raises 40001
-- under repeatable read, also where the rival deleted the row (an upsert would silently insert it again).
create or replace function pgcombine.generate_pass(queue text)
returns text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(generate_pass.queue);
    _keys text;      -- word
    _values text;    -- n
    _fold text;      -- sum(n)::bigint as n
    _old text;       -- v.n as old_n
    _merge text;     -- merge of v.n and u.n as n
    _join text;      -- v.word = u.word
    _set text;       -- n = c.n
    _differs text;   -- c.old_n is distinct from c.n
begin
    select string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'),
           string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'value'),
           string_agg(format('%s as %I', format(k.fold, quote_ident(c.name), null, c.type), c.name), ', ' order by c.position) filter (where c.role = 'value'),
           string_agg(format('v.%I as %I', c.name, 'old_' || c.name), ', ' order by c.position) filter (where c.role = 'value'),
           string_agg(format('%s as %I', format(k.merge, format('v.%I', c.name), format('u.%I', c.name), c.type), c.name), ', ' order by c.position) filter (where c.role = 'value'),
           string_agg(format('v.%1$I = u.%1$I', c.name), ' and ' order by c.position) filter (where c.role = 'key'),
           string_agg(format('%1$I = c.%1$I', c.name), ', ' order by c.position) filter (where c.role = 'value'),
           string_agg(format('c.%I is distinct from c.%I', 'old_' || c.name, c.name), ' or ' order by c.position) filter (where c.role = 'value')
    into _keys, _values, _fold, _old, _merge, _join, _set, _differs
    from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
    where c.queue = _queue.queue;

    return format(
$pass$with taken as (
    delete from %%1$s returning %1$s, %2$s
), folded as (
    select %1$s, %3$s, count(*) as pgcombine_updates
    from taken
    group by %1$s
), combined as (
    select new.*, (%8$s) is true as pgcombine_gone
    from (
        select %9$s, v.ctid as pgcombine_row, u.pgcombine_updates, %4$s, %5$s
        from folded u left join %%2$s v on %6$s
    ) as new
), removed as (
    delete from %%2$s v using combined c
    where v.ctid = c.pgcombine_row and c.pgcombine_gone
    returning 1
), updated as (
    update %%2$s v set %7$s from combined c
    where v.ctid = c.pgcombine_row and not c.pgcombine_gone and (%10$s)
    returning 1
), inserted as (
    insert into %%2$s (%1$s, %2$s)
    select %1$s, %2$s from combined c where c.pgcombine_row is null and not c.pgcombine_gone
    on conflict do nothing
    returning 1
)
select (select coalesce(sum(pgcombine_updates), 0) from folded)::bigint as updates,
       (select count(*) from folded) as keys,
       (select count(*) from removed) + (select count(*) from updated) + (select count(*) from inserted) as changes$pass$,
        replace(_keys, '%', '%%'), replace(_values, '%', '%%'), replace(_fold, '%', '%%'), replace(_old, '%', '%%'),
        replace(_merge, '%', '%%'), replace(_join, '%', '%%'), replace(_set, '%', '%%'),
        replace(coalesce(_queue.delete_when, 'false'), '%', '%%'),
        replace((select string_agg(format('u.%I', c.name), ', ' order by c.position)
                 from pgcombine.queue_column c where c.queue = _queue.queue and c.role = 'key'), '%', '%%'),
        replace(_differs, '%', '%%'));
end
$$;
