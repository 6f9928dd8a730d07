-- pgcombine.create_rollup(rollup, source, key, value [, filter, keep, buckets, slice_by, if_not_exists, notify])
-- Creates a rollup: an aggregate of a table by key that follows the changes of the table. The view pgcombine.<rollup>
-- shows the aggregate. Triggers of the table enqueue the changes of its rows into a queue with the rollup's name.
--   rollup    lower-case name of at most 40 characters
--   source    a table. With partitions or inheritance, the rows of all its tables count. So do rows that row security
--             hides from the reader
--   key       expressions over a row of the table, as in a select list: 'customer', 'lower(page) as page'. Rows for
--             which one of the expressions is null don't count
--   value     aggregates: 'count(*) as requests', 'sum(tokens) filter (where done) as tokens'
--   filter    condition on rows; rows for which it isn't true don't count
--   keep      condition on rows, such as 'at < now() - interval ''90 days'''. Rows for which it is true when they are
--             deleted, truncated or detached stay counted. In <rollup>_values, columns with the suffix _kept have what
--             such rows add to sums. For their keys, passes compute no columns from the source any more: minima and
--             maxima only widen, and other computed columns keep their value. In a table with partitions, rows that go
--             during an update of the table, by WITH, MERGE, a function or a trigger, aren't kept. If logical
--             replication moves a row that meets the condition to another partition, it counts twice
--   buckets   see create_queue
--   slice_by  a column of the source. The rows with its greatest values are backfilled first
--   if_not_exists  whether the same rollup may exist already
--   notify    see create_queue; null: unless the server allows prepared transactions
-- Expressions must be immutable, as those of an index are; keep may call stable functions. In their strings, a
-- backslash is an ordinary character (standard_conforming_strings = on). Aggregates such as array_agg need order by.
-- For some aggregates, such as min, max and array_agg, passes read rows of the source (see analyze_rollup). Then the
-- function warns if no index of the source begins with the key expressions.
-- Workers add the existing rows of the table, as call pgcombine.backfill(rollup) does. The column ready_at of
-- pgcombine.rollup has the time when all of them were added. truncate_queue(rollup) lets them begin anew.
-- Writers of the table wait until the caller's transaction ends. The function waits for earlier writers, no longer than
-- lock_timeout allows.
-- The caller needs the rights of the owners of the schema and of the table.
-- Tables written: pgcombine.rollup, rollup_part; those of create_queue.
-- Errors: PC002 the name is taken, or the rollup exists with another definition; PC003 an invalid definition, or
-- row security hides rows of the source from the caller; 42501 missing rights; 55P03 the table
-- wasn't free within lock_timeout.
create or replace function pgcombine.create_rollup(rollup text, source regclass, key text[], value text[],
    filter text default null, keep text default null, buckets integer default 1, slice_by text default null,
    if_not_exists boolean default false, notify boolean default null)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _name constant text := rollup;
    _source record;
    _definition jsonb;
    _found pgcombine.rollup;
    _problem text;
    _hint text;
begin
    select c.relkind, c.relname, c.relowner, c.relpersistence into _source from pg_class c where c.oid = source;
    select r.* into _found from pgcombine.rollup r where r.queue = _name;
    if found and if_not_exists then
        perform pgcombine_internal.require((_found.source, _found.key, _found.value, _found.filter, _found.keep,
            _found.slice_by) is not distinct from (source, key, value, filter, keep, slice_by), 'PC002',
            format('rollup "%s" has another definition', _name),
            format('it is %s by %s of %s%s%s', array_to_string(_found.value, ', '), array_to_string(_found.key, ', '),
                _found.source, coalesce(' where ' || _found.filter, ''), coalesce(', keep ' || _found.keep, '')));
        return;
    end if;

    perform pgcombine_internal.require_owner();
    select r.problem, r.hint into _problem, _hint
    from (values
        (_source.relpersistence is distinct from 'u',
         format('%s can''t be the source of a rollup: it is unlogged, so a crash would empty it unnoticed', source),
         format('alter table %s set logged', source)),
        (_source.relkind in ('r', 'p') and _source.relpersistence <> 't',
         format('%s can''t be the source of a rollup: it isn''t a table%s', coalesce(source::text, 'null'),
             case when _source.relpersistence = 't' then ' that stays' end),
         'instead of a view or a join, make a rollup of one table by the foreign key, and join the others when you '
         'read it'),
        (pg_has_role(_source.relowner, 'usage'),
         format('permission denied: role "%s" lacks the rights of the owner of %s', current_user, source),
         format('grant %I to %I', pg_get_userbyid(_source.relowner), current_user)),
        (not row_security_active(source), format('row security hides rows of %s from role "%s"', source, current_user),
         'create the rollup as a role that row security doesn''t bind'),
        (slice_by is null or exists (select from pg_attribute a where a.attrelid = source and a.attnum > 0
             and not a.attisdropped and a.attname = slice_by),
         format('%s has no column "%s" to slice by', source, slice_by), 'name an indexed column'),
        (slice_by is null or (select (pgcombine_internal.type_operator(a.atttypid, 1)).name is not null
             from pg_attribute a where a.attrelid = source and a.attnum > 0 and a.attname = slice_by),
         format('the values of column "%s" of %s have no order to slice by', slice_by, source),
         'name an indexed column'),
        (not exists (select from pg_inherits i where i.inhrelid = source),
         format('%s is a part of another table, and statements on that one would be missed', source),
         format('make the rollup of %s', (select i.inhparent::regclass from pg_inherits i where i.inhrelid = source
             limit 1)))) r (holds, problem, hint)
    where r.holds is not true;
    perform pgcombine_internal.require(not found, case when _problem like 'permission%' then '42501' else 'PC003' end,
        _problem, _hint);
    perform pgcombine_internal.require(to_regclass(format('pgcombine.%I', _name)) is null
        and to_regclass(format('pgcombine.%I', _name || '_source')) is null, 'PC002',
        format('a relation pgcombine.%s exists', _name), 'choose another name');

    -- also keeps other sessions from changing the table's definition
    execute format('lock table %s in share row exclusive mode', source);
    _definition := pgcombine_internal.analyze_rollup(source, key, value, filter, keep);
    if slice_by is not null then
        _definition := jsonb_set(_definition, array['reads', slice_by], (
            select to_jsonb(a.attnum) from pg_attribute a where a.attrelid = source and a.attname = slice_by));
    end if;

    perform pgcombine.create_queue(_name,
        array(select format('%I %s', k.value ->> 'name', k.value ->> 'type')
                || coalesce(' collate ' || (k.value ->> 'collation'), '')
            from jsonb_array_elements(_definition -> 'keys') with ordinality k (value, place) order by k.place),
        array(select format('%I %s', s.value ->> 'name', s.value ->> 'type')
                || coalesce(' collate ' || (s.value ->> 'collation'), '') || ' ' || (s.value ->> 'combiner')
            from jsonb_array_elements(_definition -> 'states') with ordinality s (value, place) order by s.place),
        buckets => create_rollup.buckets,
        notify => coalesce(create_rollup.notify, current_setting('max_prepared_transactions')::integer = 0));
    insert into pgcombine.rollup (queue, source, key, value, filter, keep, slice_by, definition)
    values (_name, create_rollup.source, create_rollup.key, create_rollup.value, create_rollup.filter,
        create_rollup.keep, create_rollup.slice_by, _definition - '{reads,texts}'::text[]);
    perform pgcombine_internal.make_rollup_views(_name, _definition);
    perform pgcombine_internal.keep_rights(); -- on the new views
    -- the condition deletes a key that has and had no row; it is set here, since create_queue would warn of it
    update pgcombine.queue q
    set delete_when = pgcombine_internal.checked_condition(_name, 'delete_when', (
        select string_agg(format('coalesce(%I, 0) operator(pg_catalog.=) 0', s ->> 'name'), ' and ')
        from jsonb_array_elements(_definition -> 'states') s where s ->> 'kind' in ('sum', 'kept')))
    where q.queue = _name;
    perform pgcombine_internal.generate_rollup(_name); -- regenerate_rollup would only warn of an error
    perform pgcombine_internal.make_rollup_triggers(_name);
    perform pgcombine_internal.regenerate(_name);
    perform pgcombine_internal.watch_ddl();
    if _definition #>> '{computed,columns}' is not null then
        perform pgcombine_internal.warn_of_missing_index(_name);
    end if;
end
$$;
