-- pgcombine_internal.recount(queue) → (problem)
-- Compares a queue's values, together with pending and quarantined updates, with a recount of all attached tables in
-- one snapshot.
-- Returns one row with the number of keys that differ and a row for each of the first ten; no row: all keys agree.
-- A key differs if the triggers missed a change of a table (see attach). It also differs if another program enqueues
-- into the queue, or if a table was attached without its existing rows.
-- Values of type real and double precision may differ by a millionth.
-- The mappings run with the caller's rights. So the tables must belong to the caller, to a role that has the caller's
-- rights, or to the schema's owner. The caller must be able to read all rows of the tables.
-- Errors: PC001 unknown queue; PC003 no table is attached; 40001 a table was truncated or rewritten since the snapshot,
-- which doesn't show what it held then; 42501 row security hides rows, or a table belongs to another
-- role.
create or replace function pgcombine_internal.recount(queue text)
returns table (problem text)
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(recount.queue);
    _sources constant regclass[] := array(
        select a.source from pgcombine.attachment a join pg_class c on c.oid = a.source
        where a.queue = _queue.queue order by a.id);
    _row record;
    _table regclass;
begin
    perform pgcombine_internal.require(_sources <> '{}', 'PC003',
        format('no table is attached to queue "%s": there is nothing to recount', _queue.queue),
        'leave recount out');
    perform pgcombine_internal.require(
        pg_has_role(c.relowner, current_user, 'usage')
            or c.relowner = (select n.nspowner from pg_namespace n where n.nspname = 'pgcombine'),
        '42501', format('the mapping of %s is its owner''s and would run with the rights of role "%s"', c.oid::regclass,
            current_user),
        format('verify as that role: set role %I (it needs the right read)', pg_get_userbyid(c.relowner)))
    from pg_class c
    where c.oid = any (_sources);
    perform pgcombine_internal.require(not row_security_active(s), '42501',
        format('row security hides rows of %s from role "%s": it can''t be recounted', s, current_user),
        'verify as a role that row security doesn''t bind')
    from unnest(_sources) s;
    for _row in execute pgcombine_internal.recount_sql(_queue.queue) loop
        if _row.number = 1 then
            problem := format('%s %s from a recount of %s: a trigger missed a change, or another program enqueues, too',
                _row.keys, case _row.keys when 1 then 'key differs' else 'keys differ' end,
                array_to_string(_sources, ', '));
            return next;
        end if;
        problem := _row.sentence;
        return next;
    end loop;
    -- The comparison has locked the tables, so these are the files that it has read. The snapshot has those of its
    -- time.
    for _table in
        select d.relation
        from unnest(_sources || format('pgcombine.%I', _queue.queue || '_values')::regclass) s,
            pgcombine_internal.descendants(s) d (relation)
        left join pg_class c on c.oid = d.relation
        where c.relfilenode is distinct from coalesce(pg_relation_filenode(d.relation), 0)
    loop
        raise serialization_failure
            using message = format('%s was truncated or rewritten during the recount of queue "%s"', _table,
            _queue.queue),
            hint = 'verify again, in a new transaction';
    end loop;
end
$$;
