-- pgcombine_internal.open_stage(load)
-- Makes the stage of a load that begins, for begin_load. It has the queue's columns and
--   pgcombine_part     the data frame's partition, for writers that don't know which attempts at it succeeded
--   pgcombine_attempt  the transaction id of the attempt; a part is written in one transaction
-- The stage is unlogged, so a crash of the server empties it. The crash also empties spark_alive. So end_load sees that
-- rows were lost.
-- Runs with its owner's rights, for workers.
-- Tables written: pgcombine.spark_alive; makes the stage.
-- Errors: PC030 no such load begins in this transaction; 42501 the caller lacks the right work.
create or replace function pgcombine_internal.open_stage(load uuid)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set default_tablespace = '' -- not that of the caller, who may lack the right to create objects in it
as $$
declare
    _load pgcombine.spark_load;
begin
    perform pgcombine_internal.require_right(null, 'work', pgcombine_internal.caller());
    select l.* into _load from pgcombine.spark_load l
    where l.load = open_stage.load and l.started_at = now();
    perform pgcombine_internal.require(found, 'PC030', format('no load %s begins in this transaction', load),
        'call pgcombine_internal.begin_load');
    insert into pgcombine.spark_alive (load) values (_load.load);
    execute format(
        'create unlogged table pgcombine.spark_stage_%s (%s, pgcombine_part integer, pgcombine_attempt xid8 not null '
            'default pg_current_xact_id())
         with (autovacuum_enabled = off)', _load.number,
        -- as in <queue>_updates, a row needs a key, and a value that isn't given has its default
        concat_ws(', ', pgcombine_internal.column_list(_load.queue, 'key', '{name} {type}{collate} not null'),
            pgcombine_internal.column_list(_load.queue, 'value', '{name} {type}{collate} default {initial}')));
    execute format('comment on table pgcombine.spark_stage_%s is %L', _load.number,
        format('Rows of the unfinished load %s into queue %s.', _load.run_id, _load.queue));
    perform pgcombine_internal.keep_rights();
end
$$;
