-- pgcombine_internal.exchange_tables(queue)
-- Last step of rebucket: drops the partitions of the queue's tables and gives them those of <queue>_updates_new and
-- <queue>_values_new in their place, with the owner and the privileges of the old ones.
-- Until rebucket makes the view <queue>_pending anew, it lists all updates that are stored.
create or replace function pgcombine_internal.exchange_tables(queue text)
returns void
language plpgsql
as $$
declare
    _updates constant text := format('pgcombine.%I', exchange_tables.queue || '_updates');
    _values constant text := format('pgcombine.%I', exchange_tables.queue || '_values');
    _new_updates constant text := format('pgcombine.%I', exchange_tables.queue || '_updates_new');
    _new_values constant text := format('pgcombine.%I', exchange_tables.queue || '_values_new');
    _children oid[];
    _child record;
begin
    -- The view names the old partitions, so replace its query before they are dropped.
    execute format('create or replace view pgcombine.%I as select %s from %s', exchange_tables.queue || '_pending',
        pgcombine_internal.column_list(exchange_tables.queue, form => '{name}::{type} as {name}'), _updates);
    select array_agg(t.relid) into _children
    from unnest(array[_new_updates, _new_values]) p
    cross join lateral pg_partition_tree(p::regclass) t
    where t.level > 0;
    perform pgcombine_internal.copy_owner(
        format('pgcombine.%I', regexp_replace(
            regexp_replace(c.relname, '_new$', ''), '_b\d+(_s\d+)?$', '_b0000\1'))::regclass, c.oid)
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
        if _child.parent in (_updates, _values) then -- others stay where they are
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
