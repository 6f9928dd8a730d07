-- pgcombine.attach(queue, source, mapping [, existing])
-- Attaches a table to a queue: from now on each insert, update, delete and truncate of the table enqueues updates in
-- the same transaction. New rows enqueue the result of the mapping, old rows its inverse.
--   source    a table. If it has partitions, or other tables inherit from it, the rows of all these tables count,
--             whichever of them a statement names.
--   mapping   a select whose output columns have the names of the queue's columns. It reads the columns of one row,
--             also by the table's name: 'select word, 1 as n from regexp_split_to_table(body, ''\W+'') word'. Its
--             result must depend on nothing else. A value column that it lacks takes its default.
--   existing  whether to enqueue the rows that the table has now
-- Names in the mapping are looked up on the search path of the caller of attach, even when another role changes the
-- table.
-- A role that changes the table needs the right to insert into <queue>_updates. The caller of attach also needs the
-- right to make triggers of the table.
-- Every combiner of the queue must have an inverse: sum or count. Writers of the table wait until the caller's
-- transaction ends.
-- A table without partitions and inheritance enqueues once a statement. Other tables enqueue once a row, which costs
-- more: see attached_triggers.
-- These changes are not seen: ATTACH and DETACH PARTITION, INHERIT and NO INHERIT of a table with rows, DROP TABLE, and
-- an ALTER TABLE that gives columns other values. A TRUNCATE that names a partition made after attach is not seen
-- either until pgcombine.regenerate(queue) makes the partition's trigger; pgcombine.verify(queue) names the missing
-- one. pgcombine.verify(queue, recount => true) names the keys that differ.
-- Tables written: pgcombine.attachment, <queue>_updates.
-- Errors: PC001 unknown queue; PC002 attached already; PC003 a combiner without inverse, a mapping that doesn't work,
-- rows that can't be read, a virtual column that a partition generates otherwise, existing rows outside of read
-- committed; 42501 missing rights.
create or replace function pgcombine.attach(queue text, source regclass, mapping text, existing boolean default true)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(attach.queue);
    _alias constant name := (select c.relname from pg_class c where c.oid = attach.source);
    _mapping constant text := rtrim(attach.mapping, E' \t\r\n;');
    _wrong text;
    _probe text;
    _found name[];
    _used name[];
    _id integer;
begin
    select string_agg(format('"%s" (%s)', c.name, c.combiner), ', ' order by c.position) into _wrong
    from pgcombine.queue_column c
    where c.queue = _queue.queue and c.role = 'value' and pgcombine_internal.inverse_of(c.combiner) is null;
    if _wrong is not null then
        raise exception 'queue "%" can''t be attached: what an old row added can''t be taken back from column %', _queue.queue, _wrong
            using errcode = 'PC003', hint = 'only sum and count have an inverse';
    end if;
    select t.tgrelid::regclass into _wrong
    from pgcombine_internal.descendants(attach.source) d join pg_trigger t on t.tgrelid = d
    where t.tgname = format('pgcombine_%s_insert', _queue.queue);
    if found then
        raise exception 'queue "%" is attached to % already', _queue.queue, _wrong
            using errcode = 'PC002', hint = 'detach first';
    end if;
    select d.relation || '.' || a.attname into _wrong
    from pgcombine_internal.descendants(attach.source) d (relation)
    join pg_attribute a on a.attrelid = d.relation and a.attgenerated = 'v'
    join pg_attrdef e on e.adrelid = a.attrelid and e.adnum = a.attnum
    join pg_attribute o on o.attrelid = attach.source and o.attname = a.attname
    join pg_attrdef f on f.adrelid = o.attrelid and f.adnum = o.attnum
    where pg_get_expr(e.adbin, e.adrelid) <> pg_get_expr(f.adbin, f.adrelid);
    if found then
        raise exception 'the virtual column % is generated otherwise than that of %', _wrong, attach.source
            using errcode = 'PC003', hint = 'generate it by the same expression, or store it';
    end if;
    if existing and current_setting('transaction_isolation') <> 'read committed' then -- an older snapshot would miss rows
        raise exception 'attach of queue "%" needs isolation level read committed', _queue.queue
            using errcode = 'PC003', hint = 'or pass existing => false';
    end if;
    if existing and row_security_active(attach.source) then
        raise exception 'row security hides rows of % from role "%"', attach.source, current_user
            using errcode = 'PC003', hint = 'attach as a role that row security doesn''t bind, or pass existing => false';
    end if;

    -- A view proves that the mapping is a single select. The catalog then lists its output columns and the columns it reads.
    _probe := format('pgcombine_probe_%s', pg_backend_pid());
    begin
        execute format(E'create temporary view %I as select pgcombine_mapped.* from %s as %I cross join lateral (%s\n) as pgcombine_mapped',
                       _probe, attach.source, _alias, _mapping);
    exception when others then
        raise exception 'the mapping of queue "%" doesn''t work over %: %', _queue.queue, attach.source, sqlerrm
            using errcode = 'PC003', hint = 'a select over the columns of the row, its output columns named as the queue''s';
    end;
    select array_agg(a.attname) into _found
    from pg_attribute a where a.attrelid = ('pg_temp.' || _probe)::regclass and a.attnum > 0;
    select array_agg(distinct a.attname) into _used
    from pg_rewrite r
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
        and d.refobjid = attach.source and d.refobjsubid > 0
    join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    where r.ev_class = ('pg_temp.' || _probe)::regclass;
    execute format('drop view pg_temp.%I', _probe);
    select string_agg(format('"%s"', f), ', ') into _wrong
    from unnest(_found) f where not exists (select from pgcombine.queue_column c where c.queue = _queue.queue and c.name = f);
    if _wrong is not null then
        raise exception 'the mapping gives column %, which queue "%" doesn''t have', _wrong, _queue.queue
            using errcode = 'PC003', hint = (select 'its columns: ' || string_agg(c.name, ', ' order by c.position)
                                             from pgcombine.queue_column c where c.queue = _queue.queue);
    end if;
    select string_agg(format('"%s"', c.name), ', ') into _wrong
    from pgcombine.queue_column c where c.queue = _queue.queue and c.role = 'key' and not c.name = any (_found);
    if _wrong is not null then
        raise exception 'the mapping lacks the key column % of queue "%"', _wrong, _queue.queue
            using errcode = 'PC003', hint = 'name its output columns as the queue''s';
    end if;

    _id := pgcombine_internal.keep_attachment(_queue.queue, attach.source, _alias, _mapping, _found, coalesce(_used, '{}'),
                                     current_schemas(false));
    perform pgcombine_internal.attach_triggers(_id);
    if existing then -- no writer can interfere: making the triggers has locked the table
        begin
            execute (select pgcombine_internal.attached_statement(a, null, attach.source::text) from pgcombine.attachment a where a.id = _id);
        exception when not_null_violation then
            raise exception 'the mapping of queue "%" gives keys that are null: %', _queue.queue, sqlerrm
                using errcode = 'PC003', hint = 'leave such rows out of it by a where clause';
        end;
    end if;
end
$$;
