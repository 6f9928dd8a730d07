-- pgcombine_internal.rebuild_tables(queue, partitions, until)
-- Gives <queue>_updates and <queue>_values other partitions, for rebucket. The function copies values and pending
-- updates to new tables, locks the queue's tables, copies the newer updates, and exchanges the partitions. Updates keep
-- their ids. The new partitions have the owner and the privileges of the old ones. The view <queue>_pending then lists
-- all updates, until rebucket recreates the view.
--   until  when to stop trying to lock the tables
-- Tables written: <queue>_updates, <queue>_values, restoring.
-- Errors: PC001 unknown queue; PC006 the lock wasn't granted in time.
create or replace function pgcombine_internal.rebuild_tables(queue text, partitions integer, until timestamptz)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _name constant text := _queue.queue;
    _updates constant text := format('pgcombine.%I', _name || '_updates');
    _values constant text := format('pgcombine.%I', _name || '_values');
    _new_updates constant text := format('pgcombine.%I', _name || '_updates_new');
    _new_values constant text := format('pgcombine.%I', _name || '_values_new');
    _columns constant text := pgcombine_internal.column_list(_name);
    _keys constant text := pgcombine_internal.column_list(_name, 'key');
    _unseen text := ''; -- condition: the mark of the last round doesn't see the update
    _mark txid_snapshot;
    _locked boolean := false;
    _log record;
    _count bigint;
    _moved bigint;
    _round integer := 0;
    _next timestamptz := '-infinity';
    _attempt integer := 0;
    _children oid[];
    _child record;
begin
    -- The partition key of the new log has no cast to own_tx. The check constraint below has the cast, and so calls the
    -- domain's function for each row.
    execute format('create table %s (like %s including defaults including constraints)
                    partition by list (((pgcombine_tx >> %s) & %s))',
        _new_updates, _updates, _queue.segment_bits, _queue.segments - 1);
    execute format('create table %s (like %s including defaults including constraints) partition by hash (%s)',
        _new_values, _values, _keys);
    perform pgcombine_internal.create_partitions(_name, partitions, '_new');
    -- A check constraint with the segment's partition condition saves the exchange a scan under its lock.
    for _child in
        select n.inhrelid::regclass as name, pg_get_partition_constraintdef(o.inhrelid) as condition
        from pg_inherits n join pg_class nc on nc.oid = n.inhrelid
        join pg_inherits o on o.inhparent = _updates::regclass join pg_class oc on oc.oid = o.inhrelid
        where n.inhparent = _new_updates::regclass
          and pg_get_expr(nc.relpartbound, nc.oid) = pg_get_expr(oc.relpartbound, oc.oid)
    loop
        execute format('alter table %s add constraint pgcombine_place check (%s)', _child.name, _child.condition);
    end loop;
    execute format('insert into %s (%s) select %2$s from %s', _new_values, _columns, _values);
    for _number in 0 .. partitions - 1 loop
        execute format('alter table %s add constraint %I primary key (%s)%s; analyze %1$s',
            pgcombine_internal.values_table(_name, _number, '_new'),
            _name || '_values_b' || to_char(_number, 'FM0000') || '_pkey_new', _keys, ' using index tablespace '
                || quote_ident(_queue.tablespaces[1 + _number % cardinality(_queue.tablespaces)]));
    end loop;

    insert into pgcombine.restoring default values;
    loop
        if _locked or clock_timestamp() >= _next then -- most is copied before the lock, the rest under it
            _mark := case when not _locked then pgcombine_internal.current_mark() end;
            _moved := 0;
            for _log in
                select l.tables, l.condition
                from pgcombine.bucket b cross join lateral pgcombine_internal.bucket_log(b.queue, b.bucket, _mark) l
                where b.queue = _name
                order by b.bucket
            loop
                execute format('insert into %s (%s, pgcombine_tx) select %2$s, pgcombine_tx from %s', _new_updates,
                    _columns, pgcombine_internal.log_sql(_name, _log.tables, _log.condition || _unseen));
                get diagnostics _count = row_count;
                _moved := _moved + _count;
            end loop;
            exit when _locked;
            _unseen := format(' and (pgcombine_tx >= %s or pgcombine_tx = any (%L))', txid_snapshot_xmax(_mark),
                array(select txid_snapshot_xip(_mark)));
            _round := _round + 1;
            continue when _moved >= 10000 and _round < 5;
            _next := clock_timestamp() + interval '10 s';
        end if;
        _locked := pgcombine_internal.lock_tables(_name, _attempt);
        perform pgcombine_internal.require(_locked or clock_timestamp() <= until, 'PC006',
            format('the tables of queue "%s" were in use all the time', _name),
            'nothing was changed; look for long transactions in pg_stat_activity, or give more time');
        _attempt := _attempt + 1;
    end loop;
    delete from pgcombine.restoring r where r.tx = txid_current();

    -- The view names the old partitions, so replace its query before they are dropped.
    execute format('create or replace view pgcombine.%I as select %s from %s', _name || '_pending',
        pgcombine_internal.column_list(_name, form => '{name}::{type} as {name}'), _updates);
    _children := array(
        select t.relid from unnest(array[_new_updates, _new_values]) p, pg_partition_tree(p::regclass) t
        where t.level > 0);
    perform pgcombine_internal.copy_owner(
        format('pgcombine.%I', regexp_replace(
            regexp_replace(c.relname, '_new$', ''), '(_b\d+)?(_s\d+)?$', '_b0000\2'))::regclass, c.oid)
    from pg_class c where c.oid = any (_children);
    execute (select 'drop table ' || string_agg(i.inhrelid::regclass::text, ', ')
             from pg_inherits i where i.inhparent in (_updates::regclass, _values::regclass));
    for _child in
        select c.oid::regclass as name, left(c.relname, -length('_new')) as final, p.oid::regclass as prepared,
               format('pgcombine.%I', left(p.relname, -length('_new'))) as parent,
               pg_get_expr(c.relpartbound, c.oid) as bound
        from pg_class c join pg_inherits i on i.inhrelid = c.oid join pg_class p on p.oid = i.inhparent
        where c.oid = any (_children)
    loop
        execute format('alter table %s rename to %I', _child.name, _child.final);
        if _child.parent in (_updates, _values) then -- deeper partitions move with their parents
            execute format('alter table %s detach partition %s', _child.prepared, _child.name);
            execute format('alter table %s attach partition %s %s', _child.parent, _child.name, _child.bound);
        end if;
        if _child.parent = _updates then
            execute format('alter table %s drop constraint pgcombine_place', _child.name);
        end if;
        if _child.parent = _values then
            execute format('alter table %s rename constraint %I to %I',
                _child.name, _child.final || '_pkey_new', _child.final || '_pkey');
        end if;
    end loop;
    execute format('drop table %s, %s', _new_updates, _new_values);
end
$$;
