-- pgcombine_internal.warn_of_delete_when(queue)
-- Warns if delete_when holds for values that aren't the combiners' identity (n <= 0; or n = 0 in a queue with a second
-- sum). The result for a key then depends on which updates fall into one pass.
-- The function tries samples. If delete_when holds for a value, the next update must give the same result with that
-- value as without a value.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.warn_of_delete_when(queue text)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _parts record;
    _few integer;
    _found record;
begin
    select count(*)::integer as columns,
           string_agg(format('(select e::%s from unnest(%L::text[]) with ordinality as s(e, place) where place <= $1) '
               'as s%s(%I)',
               c.type, pgcombine_internal.samples(c.type), c.position, c.name), ', ' order by c.position) as samples,
           pgcombine_internal.column_list(_queue.queue, 'value', 'null::{type} as {name}') as nulls,
           string_agg(pgcombine_internal.merge_expression(c, 'v', 'u') || format(' as %I', c.name), ', '
               order by c.position) as kept,
           string_agg(pgcombine_internal.merge_expression(c, 'w', 'u') || format(' as %I', c.name), ', '
               order by c.position) as forgotten,
           string_agg(pgcombine_internal.differ_expression(c.type, format('k.%I', c.name), format('f.%I', c.name)),
               ' or ' order by c.position) as differ
    into _parts
    from pgcombine.queue_column c
    where c.queue = _queue.queue and c.role = 'value';
    _few := greatest(2, floor(4096 ^ (1.0 / _parts.columns)));
    begin
        execute pgcombine_internal.fill($try$
            with sample as (select * from {samples} limit 4096),
                 gone as (select * from sample where {delete_when} limit 30),
                 updates as (select * from sample order by md5(row(sample.*)::text) limit 30)
            select row(v.*)::text as value, row(u.*)::text as update, row(k.*)::text as kept,
                row(f.*)::text as forgotten
            from gone v cross join updates u cross join (select {nulls}) as w
            cross join lateral (select {kept}) as k cross join lateral (select {forgotten}) as f
            where {differ}
            limit 1$try$, to_jsonb(_parts) || jsonb_build_object('delete_when', _queue.delete_when))
        into _found using _few;
    exception when others then
        if sqlstate like '42%' then
            raise;
        end if;
        return; -- the samples don't suit this combiner or this condition
    end;

    if _found.value is not null then
        raise warning 'delete_when % of queue "%" holds for %, which differs from no value: the next update % makes it '
            '%, but % if the key was deleted before',
            quote_literal(_queue.delete_when), _queue.queue, _found.value, _found.update, _found.kept, _found.forgotten
            using hint = 'the result depends on which updates a pass takes together; let the condition hold only for '
                'values that change nothing, for example n = 0 for a sum';
    end if;
end
$$;
