-- pgcombine_internal.export_target(export)
--     → (create_table, create_stage, copy, put, apply, create_owner, ask, set_owner, sweep, drop_stage, ahead, begun)
-- Returns the statements that the exporter postgres runs in the other database:
--   create_table  makes the table that is kept equal to the queue's values. It has the key columns as its primary key,
--                 the value columns, pgcombine_seq (the sequence of the entry that the row comes from) and
--                 pgcombine_deleted (whether the queue no longer has the key). A deleted key's row stays, so that a
--                 late older entry can't bring the key back
--   create_stage  makes a temporary table for one batch
--   copy, put     fill the stage: by COPY, or from a JSON array of entries (parameter $1)
--   apply         applies the batch in one statement. For each key it takes the entry with the highest sequence, if
--                 that is higher than the row's. It writes in key order, so that two workers can't deadlock
--   create_owner  makes the table of the owners
--   ask           returns the epoch and the owner whose entries the table accepts, and locks them against a new owner
--   set_owner     makes a server ($2) the owner of the table from an epoch ($1) on, unless that epoch or a later
--                 one is recorded
--   sweep         marks keys as deleted whose rows come from before an epoch, since the epoch's full state lacks them.
--                 $1 is the lower bound of the epoch's sequences
--   drop_stage    drops the stage, for connections that other programs use afterwards
--   ahead         returns the highest sequence of the batch's keys in the table, if it is beyond a number ($1); else
--                 null
--   begun         whether entries were delivered already, so that the table must exist: a new table would lack them
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.export_target(export text, out create_table text, out create_stage text,
    out copy text, out put text, out apply text, out create_owner text, out ask text, out set_owner text,
    out sweep text, out drop_stage text, out ahead text, out begun boolean)
language plpgsql stable
set quote_all_identifiers = off
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_target.export);
    _table constant text := pgcombine_internal.target_name(_export.export);
    _stage constant text := format('pg_temp.%I', 'pgcombine_' || _export.export);
    _keys constant text := pgcombine_internal.column_list(_export.queue, 'key');
    _staged constant text := _keys || ', ' || pgcombine_internal.column_list(_export.queue, 'value', '{new}');
begin
    begun := exists (select from pgcombine.export_bucket b where b.export = _export.export and b.delivered > 0);
    create_table := format('create table if not exists %s (%s, pgcombine_seq bigint not null, pgcombine_deleted '
        'boolean not null, primary key (%s))',
        _table, pgcombine_internal.column_list(_export.queue, form => '{name} {type}'), _keys);
    create_stage := format('create temporary table if not exists %I (%s, %s, seq bigint not null) on commit delete '
        'rows', 'pgcombine_' || _export.export,
        pgcombine_internal.column_list(_export.queue, 'key', '{name} {type}'),
        pgcombine_internal.column_list(_export.queue, 'value', '{new} {type}'));
    drop_stage := format('drop table %s', _stage);
    copy := format('copy %s (%s, seq) from stdin', _stage, _staged);
    put := format('insert into %s select * from jsonb_populate_recordset(null::%s, $1)', _stage, _stage);
    apply := pgcombine_internal.fill(
'insert into {target} as t ({columns}, pgcombine_seq, pgcombine_deleted)
select distinct on ({keys}) {staged}, seq, {gone} from {stage} order by {keys}, seq desc
on conflict ({keys}) do update set {assign}, pgcombine_seq = excluded.pgcombine_seq,
    pgcombine_deleted = excluded.pgcombine_deleted
where t.pgcombine_seq < excluded.pgcombine_seq',
        jsonb_build_object('target', _table, 'columns', pgcombine_internal.column_list(_export.queue), 'keys', _keys,
            'staged', _staged, 'stage', _stage,
            'gone', pgcombine_internal.column_list(_export.queue, 'value', '{new} is null', ' and '),
            'assign', pgcombine_internal.column_list(_export.queue, 'value', '{name} = excluded.{name}')));
    create_owner := 'create table if not exists pgcombine_owner (target text primary key, epoch bigint not null, owner '
        'text not null)';
    ask := format('select epoch, owner from pgcombine_owner where target = %L for share', _table);
    set_owner := format(
$set_owner$insert into pgcombine_owner as o (target, epoch, owner) values (%L, $1, $2)
on conflict (target) do update set epoch = excluded.epoch, owner = excluded.owner
    where o.epoch < excluded.epoch$set_owner$, _table);
    sweep := format('update %s set pgcombine_deleted = true, pgcombine_seq = $1 where pgcombine_seq < $1 and not '
        'pgcombine_deleted', _table);
    ahead := format('select max(t.pgcombine_seq) from %s s join %s t on %s where t.pgcombine_seq > $1', _stage,
        _table, pgcombine_internal.column_list(_export.queue, 'key', 't.{name} {equals} s.{name}', ' and '));
end
$$;
