-- pgcombine.export_target(export)
--     → (create_table, create_stage, copy, put, apply, create_owner, ask, claim, sweep, drop_stage, ahead)
-- The statements that the exporter postgres runs in the other database:
--   create_table  the table that is kept equal to the queue's values: the key columns, its primary key; the value
--                 columns; pgcombine_seq, the sequence of the entry a row comes from; pgcombine_deleted: the queue
--                 has no such key any more (such a row stays, so that an older entry which comes late, from a worker
--                 that was thought dead, can't bring the key back)
--   create_stage  a temporary table for one batch
--   copy, put     fill it: by COPY, or from a JSON array of entries (parameter $1)
--   apply         the batch, in one statement: of each key the entry with the highest sequence, if it is higher than
--                 that of the row that is there. Keys in order, so that two workers can't deadlock.
--   create_owner  the table that tells who owns the tables here, where several servers have the export, since which epoch
--   ask           for the epoch ($1) and the owner ($2) of the batch: those that are obeyed, locked against a new owner
--   claim         takes the table for a higher epoch
--   sweep         marks as deleted what comes from before an epoch ($1), whose full state lacks it
--   drop_stage    where nothing may be left on the connection
--   ahead         the highest sequence of the batch's keys there, if it is beyond that number ($1)
-- Errors: PC021 unknown export.
create or replace function pgcombine.export_target(export text, out create_table text, out create_stage text, out copy text,
    out put text, out apply text, out create_owner text, out ask text, out claim text, out sweep text, out drop_stage text, out ahead text)
language plpgsql stable
as $$
declare
    _export constant pgcombine.export := pgcombine.require_export(export_target.export);
    _table constant text := (select string_agg(quote_ident(n.part), '.' order by n.i)
                             from unnest(parse_ident(coalesce(_export.target_table, _export.export))) with ordinality n (part, i));
    _stage constant text := format('pg_temp.%I', 'pgcombine_' || _export.export);
    _c record;
begin
    select string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key') as keys,
           string_agg(format('%I', c.name), ', ' order by c.position) as columns,
           string_agg(format('%I %s', c.name, c.type), ', ' order by c.position) as definitions,
           string_agg(format('%I %s', case c.role when 'key' then c.name else 'new_' || c.name end, c.type), ', ' order by c.position) as staged,
           string_agg(format('%I', case c.role when 'key' then c.name else 'new_' || c.name end), ', ' order by c.position) as stage_columns,
           string_agg(format('%I is null', 'new_' || c.name), ' and ' order by c.position) filter (where c.role = 'value') as gone,
           string_agg(format('%1$I = excluded.%1$I', c.name), ', ' order by c.position) filter (where c.role = 'value') as assign
    into _c
    from pgcombine.queue_column c
    where c.queue = _export.queue;
    create_table := format('create table if not exists %s (%s, pgcombine_seq bigint not null, pgcombine_deleted boolean not null, primary key (%s))',
        _table, _c.definitions, _c.keys);
    create_stage := format('create temporary table if not exists %I (%s, seq bigint not null) on commit delete rows',
        'pgcombine_' || _export.export, _c.staged);
    drop_stage := format('drop table %s', _stage);
    copy := format('copy %s (%s, seq) from stdin', _stage, _c.stage_columns);
    put := format('insert into %s select * from jsonb_populate_recordset(null::%s, $1)', _stage, _stage);
    apply := format(
$apply$insert into %1$s as t (%2$s, pgcombine_seq, pgcombine_deleted)
select distinct on (%3$s) %4$s, seq, %5$s from %6$s order by %3$s, seq desc
on conflict (%3$s) do update set %7$s, pgcombine_seq = excluded.pgcombine_seq, pgcombine_deleted = excluded.pgcombine_deleted
where t.pgcombine_seq < excluded.pgcombine_seq$apply$,
        _table, _c.columns, _c.keys, _c.stage_columns, _c.gone, _stage, _c.assign);
    create_owner := 'create table if not exists pgcombine_owner (target text primary key, epoch bigint not null, owner text not null)';
    ask := format('select epoch, owner from pgcombine_owner where target = %L for share', _table);
    claim := format(
$claim$insert into pgcombine_owner as o (target, epoch, owner) values (%L, $1, $2)
on conflict (target) do update set epoch = excluded.epoch, owner = excluded.owner where o.epoch < excluded.epoch$claim$, _table);
    sweep := format('update %s set pgcombine_deleted = true, pgcombine_seq = $1 where pgcombine_seq < $1 and not pgcombine_deleted', _table);
    ahead := format('select max(t.pgcombine_seq) from %s s join %s t using (%s) where t.pgcombine_seq > $1', _stage, _table, _c.keys);
end
$$;
