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
-- A role that changes the table needs the right to insert into <queue>_updates. The caller of attach must also own the
-- table.
-- Every combiner of the queue must have an inverse: sum or count. Writers of the table wait until the caller's
-- transaction ends.
-- A table without partitions and inheritance enqueues once a statement. Other tables enqueue once a row, which costs
-- more: see attached_triggers.
-- These changes are not seen: ATTACH and DETACH PARTITION, INHERIT and NO INHERIT of a table with rows, DROP TABLE, and
-- an ALTER TABLE that gives columns other values. A TRUNCATE that names a partition made after attach is not seen
-- either until pgcombine db upgrade makes the partition's trigger; pgcombine.verify(queue) names the missing
-- one. pgcombine.verify(queue, recount => true) names the keys that differ.
-- Tables written: pgcombine.attachment, <queue>_updates.
-- Errors: PC001 unknown queue; PC002 attached already; PC003 a combiner without inverse, a mapping that doesn't work,
-- rows that can't be read, a virtual column that a partition generates by another expression, existing rows outside of
-- read committed; 42501 missing rights.
create or replace function pgcombine.attach(queue text, source regclass, mapping text, existing boolean default true)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(attach.queue);
    _alias constant name := (select c.relname from pg_class c where c.oid = attach.source);
    _mapping constant text := rtrim(attach.mapping, E' \t\r\n;');
    _probed record;
    _owner constant oid := (select c.relowner from pg_class c where c.oid = attach.source);
    _id integer;
begin
    perform pgcombine_internal.check_attach(_queue.queue, attach.source, existing);
    -- the policy on pgcombine.attachment says the same. The right to make triggers isn't enough: the table's owner
    -- vouches for the mapping (see recount)
    perform pgcombine_internal.require_right(_queue.queue, 'enqueue');
    perform pgcombine_internal.require(pg_has_role(_owner, 'usage'), '42501',
        format('permission denied: role "%s" doesn''t own %s', current_user, attach.source),
        format('let its owner "%s" attach it', pg_get_userbyid(_owner)));
    _probed := pgcombine_internal.probe_mapping(_queue.queue, attach.source, _alias, _mapping);
    insert into pgcombine.attachment (queue, source, alias, mapping, columns, reads, path)
    values (_queue.queue, attach.source, _alias, _mapping, _probed.columns, _probed.reads, current_schemas(false))
    returning id into _id;
    perform pgcombine_internal.attach_triggers(_id);
    if existing then -- no writer can interfere: making the triggers has locked the table
        begin
            execute (select pgcombine_internal.attached_statement(a, null, attach.source::text)
                from pgcombine.attachment a where a.id = _id);
        exception when not_null_violation then
            raise exception 'the mapping of queue "%" gives keys that are null: %', _queue.queue, sqlerrm
                using errcode = 'PC003', hint = 'leave such rows out of it by a where clause';
        end;
    end if;
end
$$;
