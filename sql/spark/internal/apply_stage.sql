-- pgcombine_internal.apply_stage(load, attempts, expected, preaggregate) → bigint
-- Moves the rows of a load's winning attempts from its stage to the queue, for end_load; returns the number of updates
-- or values that the queue has got.
--   attempts, expected, preaggregate  see end_load; null: unknown, also to prepare_load
-- Tables written: <queue>_updates or <queue>_values; pgcombine.spark_load.
-- Errors: PC031 rows were lost; those of initialize_load; 42501 the caller may not insert.
create or replace function pgcombine_internal.apply_stage(load uuid, attempts xid8[], expected bigint,
    preaggregate boolean)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _load constant pgcombine.spark_load := (select l from pgcombine.spark_load l where l.load = apply_stage.load);
    _queue constant text := _load.queue;
    _values constant boolean := _load.kind = 'values';
    _target constant text := format('pgcombine.%I', _queue || case when _values then '_values' else '_updates' end);
    _stage constant text := format('pgcombine.spark_stage_%s', _load.number);
    _staged constant text := format('(select %s from %s s where %s) as staged',
        pgcombine_internal.column_list(_queue), _stage,
        case when attempts is not null then 's.pgcombine_attempt = any ($1)'
             else format('(s.pgcombine_part, s.pgcombine_attempt) in (
                 select f.pgcombine_part, min(f.pgcombine_attempt) from %s f group by f.pgcombine_part)', _stage) end);
    _keys constant text := pgcombine_internal.column_list(_queue, 'key');
    _columns text; -- the columns that the load's role could write
    _folds text;
    _found bigint; -- number of rows in the stage
    _applied bigint;
begin
    select string_agg(quote_ident(c.name), ', ' order by c.position) filter (where c.writable),
           string_agg(format('%s as %I', pgcombine_internal.fold_expression(c.c), c.name), ', ' order by c.position)
               filter (where c.role = 'value' and c.writable)
    into _columns, _folds
    from (select o as c, o.*, has_column_privilege(coalesce(_load.role, current_user), _stage, o.name,
        'insert') as writable
          from pgcombine.queue_column o where o.queue = _queue) c;
    if _values then
        update pgcombine.spark_load l set ended_at = now() where l.load = apply_stage.load;
        perform pgcombine_internal.initialize_load(load, ended => false);
    end if;
    if preaggregate and expected is not null then
        execute format('select count(*) from %s', _staged) into _found using attempts;
    end if;
    execute format('insert into %s (%s) %s', _target, _columns,
        case when preaggregate and not _values
            then format('select %s from %s group by %s', concat_ws(', ', _keys, _folds),
                pgcombine_internal.fold_source(_queue, _staged), _keys)
            else format('select %s from %s', _columns, _staged) end) using attempts;
    get diagnostics _applied = row_count;
    perform pgcombine_internal.require(coalesce(coalesce(_found, _applied) = expected, true), 'PC031',
        format('run "%s" into queue "%s" wrote %s rows, but %s are staged', _load.run_id, _queue, expected,
            coalesce(_found, _applied)),
        'nothing was applied: run it again with the same run id');
    return _applied - case when _values then pgcombine_internal.initialize_load(load, ended => true) else 0 end;
end
$$;
