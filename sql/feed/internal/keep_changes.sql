-- pgcombine_internal.keep_changes(queue) → pgcombine.change_log
-- Lets passes write a queue's changes into the table <queue>_changes from now on, unless they do so already. Returns
-- the row of the change log.
-- The caller has claimed all buckets of the queue.
-- Tables written: change_log, change_bucket, component_table, observer, queue, bucket.
-- Errors: PC002 a relation <queue>_changes exists; PC003 a queue column with the name of another column.
create or replace function pgcombine_internal.keep_changes(queue pgcombine.queue)
returns pgcombine.change_log
language plpgsql
as $$
declare
    _queue constant text := (keep_changes.queue).queue;
    _table constant text := _queue || '_changes';
    _log pgcombine.change_log;
    _parts jsonb;
begin
    select l.* into _log from pgcombine.change_log l where l.queue = _queue;
    if found then
        return _log;
    end if;
    perform pgcombine_internal.require(to_regclass(format('pgcombine.%I', _table)) is null, 'PC002',
        format('a relation pgcombine.%s exists', _table), 'drop or rename it first');
    insert into pgcombine.change_log (queue) values (_queue) returning * into _log;
    insert into pgcombine.change_bucket (queue, bucket, last)
    select _queue, b, _log.number << 40 from generate_series(0, (keep_changes.queue).buckets - 1) b;
    begin
        execute format('create table pgcombine.%I (_segment smallint not null, _bucket integer not null,
            _sequence bigint not null, _number bigint not null default nextval(''pgcombine.change_sequence''),
            _commit_version bigint not null default txid_current(),
            _commit_timestamp timestamptz not null default now(), %s) partition by list (_segment)',
            _table, concat_ws(', ',
                pgcombine_internal.column_list(_queue, 'key', '{name} {type}{collate} not null'),
                pgcombine_internal.column_list(_queue, 'value', '{old} {type}{collate}'),
                pgcombine_internal.column_list(_queue, 'value', '{new} {type}{collate}')));
    exception when duplicate_column then
        raise exception 'the changes of queue "%" can''t be kept: %', _queue, sqlerrm
            using errcode = 'PC003', hint = 'no column may be named _segment, _bucket, _sequence, _number, '
                '_commit_version, _commit_timestamp, old_… or new_…';
    end;
    for _segment in 0 .. cardinality(_log.closed) - 1 loop
        execute format('create table pgcombine.%1$I partition of pgcombine.%2$I for values in (%3$s)
                with (autovacuum_vacuum_insert_threshold = -1);
            create unique index on pgcombine.%1$I (_bucket, _sequence);
            comment on table pgcombine.%1$I is %4$L',
            _table || '_s' || _segment, _table, _segment, format('Segment %s of %s.', _segment, _table));
    end loop;
    perform pgcombine_internal.comment_changes(_table, _queue,
        format('Changes of queue %s, for its feed and its exports.', _queue), jsonb_build_object(
        '_segment', 'The partition.',
        '_bucket', 'The bucket of the pass.',
        '_sequence', 'Number of the change in its bucket. They have no gaps, and rise in the order of commits.',
        -- a pass draws it while it has claimed the key's bucket
        '_number', 'A number that no other change has. The numbers of a key''s changes rise.',
        '_commit_version', 'Id of the pass''s transaction.',
        '_commit_timestamp', 'When the pass''s transaction began.'));
    insert into pgcombine.component_table (name, queue) values (_table, _queue);
    perform pgcombine_internal.regenerate_changes(_queue);
    perform pgcombine_internal.keep_rights();
    _parts := jsonb_build_object(
        'table', format('pgcombine.%I', _table), 'queue', quote_literal(_queue),
        'columns', concat_ws(', ', pgcombine_internal.column_list(_queue, 'key'),
            pgcombine_internal.column_list(_queue, 'value', '{old}'),
            pgcombine_internal.column_list(_queue, 'value', '{new}')));
    -- The pass has claimed its bucket, so no other pass changes the bucket's last sequence meanwhile. Consumers may
    -- read a change as soon as it is visible. Then a crash must not lose it, so the pass doesn't commit asynchronously.
    perform pgcombine.add_observer(_queue, 'changes', pgcombine_internal.fill(
        'insert into {table} (_segment, _bucket, _sequence, {columns})
select (select l.segment from pgcombine.change_log l where l.queue = {queue}), {pgcombine_bucket},
       (select b.last from pgcombine.change_bucket b where b.queue = {queue} and b.bucket = {pgcombine_bucket})
           + row_number() over (), {columns}
from changes', _parts));
    perform pgcombine.add_observer(_queue, 'changes sequence', pgcombine_internal.fill(
        'update pgcombine.change_bucket b set last = b.last + c.changes
from (select count(*) as changes from changes) c
where b.queue = {queue} and b.bucket = {pgcombine_bucket} and c.changes > 0
  and (current_setting(''synchronous_commit'') not in (''off'', ''local'')
       or set_config(''synchronous_commit'', ''on'', true) = ''on'')', _parts));
    return _log;
end
$$;
