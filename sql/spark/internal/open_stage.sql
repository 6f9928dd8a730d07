-- pgcombine_internal.open_stage(load)
-- Makes the stage of a load that begins, for begin_load. It has the queue's columns and
--   pgcombine_part     the data frame's partition, for writers that don't know which attempts at it succeeded
--   pgcombine_attempt  the transaction id of the attempt; a part is written in one transaction
-- The stage is unlogged, so a crash of the server empties it. The crash also empties spark_alive. So end_load sees that
-- rows were lost.
-- The load's role may read the stage. It may insert into pgcombine_part, and into the columns that it may insert into
-- the queue's table.
-- Runs with its owner's rights. The caller's right follows from the load: only the load's role can insert the load's
-- row, and started_at, which no grant lets it set, shows that the calling transaction has inserted the row.
-- Tables written: pgcombine.spark_alive; makes the stage.
-- Errors: PC030 no such load begins in this transaction; 42501 the load's role lacks the right to insert into the
-- queue's table.
create or replace function pgcombine_internal.open_stage(load uuid)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set default_tablespace = '' -- not that of the caller, who may lack the right to create objects in it
as $$
declare
    _load pgcombine.spark_load;
    _target text;
    _columns text;
begin
    perform pgcombine_internal.caller();
    select l.* into _load from pgcombine.spark_load l
    where l.load = open_stage.load and l.started_at = now();
    perform pgcombine_internal.require(found, 'PC030', format('no load %s begins in this transaction', open_stage.load),
        'call pgcombine_internal.begin_load');
    perform pgcombine_internal.require_right(_load.queue, case _load.kind when 'values' then 'initialize'
        else 'enqueue' end, _load.role::name);
    _target := format('pgcombine.%I', _load.queue || case _load.kind when 'values' then '_values' else '_updates' end);

    insert into pgcombine.spark_alive (load) values (_load.load);
    select string_agg(quote_ident(c.name), ', ' order by c.position) into _columns
    from pgcombine.queue_column c
    -- by number: the planner may ask for the columns of other queues first, and a name would raise for them
    join pg_attribute a on a.attrelid = to_regclass(_target) and a.attname = c.name
    where c.queue = _load.queue and has_column_privilege(_load.role, a.attrelid, a.attnum, 'insert');
    execute format(
        'create unlogged table pgcombine.spark_stage_%s (%s, pgcombine_part integer, pgcombine_attempt xid8 not null '
            'default pg_current_xact_id())
         with (autovacuum_enabled = off)', _load.number,
        -- as in <queue>_updates, a row needs a key, and a value that isn't given has its default
        concat_ws(', ', pgcombine_internal.column_list(_load.queue, 'key', '{name} {type}{collate} not null'),
            pgcombine_internal.column_list(_load.queue, 'value', '{name} {type}{collate} default {initial}')));
    execute format('comment on table pgcombine.spark_stage_%s is %L', _load.number,
        format('Rows of the unfinished load %s into queue %s.', _load.run_id, _load.queue));
    execute format('grant select, insert (%s, pgcombine_part) on pgcombine.spark_stage_%s to %I', _columns,
        _load.number, _load.role);
end
$$;
