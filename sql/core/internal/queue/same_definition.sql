-- pgcombine_internal.same_definition(queue, key, value, settings)
-- Compares an existing queue with a definition. If they differ, the function raises an error: it names the existing and
-- the given columns, or the options that differ. The function doesn't compare what rebucket and operators change: the
-- number of buckets, how many share a partition, tablespaces and pass_limit.
--   key, value  as in create_queue
--   settings    options of create_queue by name
-- Errors: PC002 the queue has another definition; PC003 an invalid definition.
create or replace function pgcombine_internal.same_definition(queue text, key text[], value text[], settings jsonb)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _twin constant text := '=' || _queue.queue; -- no queue has such a name
    _given text;
    _found text;
    _differences text;
begin
    -- Records the given columns as those of a temporary queue, the twin. So their types and combiners have the same
    -- wording as the existing ones.
    begin
        insert into pgcombine.queue (queue, buckets, partitions) values (_twin, 1, 1);
        perform pgcombine_internal.add_columns(_twin, key, value);
        execute format('create table pgcombine.%I (%s)', _twin,
            pgcombine_internal.column_list(_twin, form => '{name} {type}{collate}'));
        update pgcombine.queue_column c
        set type = pgcombine_internal.type_name(a.atttypid, a.atttypmod)
        from pg_attribute a
        where c.queue = _twin and a.attrelid = format('pgcombine.%I', _twin)::regclass and a.attname = c.name;
        select string_agg(d.definition, ', ' order by d.position) filter (where d.queue = _twin),
               string_agg(d.definition, ', ' order by d.position) filter (where d.queue = _queue.queue)
        into _given, _found
        from (select c.queue, c.position, concat_ws(' ', c.role || ':', c.name, c.type, c."collation", c.combiner,
                  c.ordered_by) as definition
              from pgcombine.queue_column c where c.queue in (_twin, _queue.queue)) d;
        raise sqlstate 'PC099'; -- rolls the twin back
    exception when sqlstate 'PC099' then null;
    end;
    if _given is distinct from _found then
        raise exception 'queue "%" exists with other columns: %', _queue.queue, _found
            using errcode = 'PC002', hint = 'the call has: ' || _given;
    end if;
    settings := settings || jsonb_build_object(
        'delete_when', pgcombine_internal.checked_condition(_queue.queue, 'delete_when', settings ->> 'delete_when'),
        'expire_when', pgcombine_internal.checked_condition(_queue.queue, 'expire_when', settings ->> 'expire_when'));
    select string_agg(format('%s is %s, not %s', s.key, coalesce(d.settings ->> s.key, 'null'),
        coalesce(s.value, 'null')), '; ' order by s.key)
    into _differences
    from (select to_jsonb(_queue) as settings) d, jsonb_each_text(same_definition.settings) s
    where d.settings ->> s.key is distinct from s.value;
    if _differences is not null then
        raise exception 'queue "%" exists with other options: %', _queue.queue, _differences
            using errcode = 'PC002', hint = 'give the same options, or drop the queue first';
    end if;
end
$$;
