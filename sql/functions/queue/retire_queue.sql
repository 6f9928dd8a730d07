-- pgcombine.retire_queue(queue, force)
-- Takes a queue out of use, without dropping its tables: they get other names, <queue>_updates_dropped and
-- <queue>_values_dropped, for drop_in_portions.
-- Tables written: pgcombine.queue, queue_column, bucket, combiner.
-- Errors: those of close_queue; 2BP01 something else depends on its tables.
create or replace function pgcombine.retire_queue(queue text, force boolean)
returns void
language plpgsql
as $$
declare
    _dependent text;
    _table name;
begin
    perform pgcombine.close_queue(retire_queue.queue, retire_queue.force);
    perform pgcombine.drop_generated(retire_queue.queue);
    foreach _table in array array[retire_queue.queue || '_updates', retire_queue.queue || '_values'] loop
        -- as drop table would: views, functions and foreign keys of others
        select pg_describe_object(d.classid, d.objid, 0) into _dependent
        from pg_partition_tree(format('pgcombine.%I', _table)::regclass) p
             join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = p.relid
        where d.classid in ('pg_rewrite'::regclass, 'pg_proc'::regclass)
           or d.classid = 'pg_constraint'::regclass
              and exists (select from pg_constraint k where k.oid = d.objid and k.confrelid = p.relid)
        limit 1;
        if found then
            raise exception 'queue "%" can''t be dropped: % depends on pgcombine.%', retire_queue.queue, _dependent, _table
                using errcode = '2BP01', hint = 'drop that first';
        end if;
        execute format('alter table pgcombine.%I rename to %I', _table, _table || '_dropped');
    end loop;
    delete from pgcombine.queue q where q.queue = retire_queue.queue;
    perform pgcombine.drop_unused_combiners();
end
$$;
