-- pgcombine_internal.enqueue_truncated(id, relation)
-- Enqueues the inverse of a table's rows. The triggers of an attached table call it before a TRUNCATE. For a table with
-- partitions these are the rows of those partitions that lack such a trigger, since they were made later.
--   relation  the table of the trigger: the attached one or one of its descendants
-- Tables written: <queue>_updates.
-- Errors: PC003 the isolation level isn't read committed, or row security hides rows that TRUNCATE removes.
create or replace function pgcombine_internal.enqueue_truncated(id integer, relation regclass)
returns void
language plpgsql
as $$
declare
    _a pgcombine.attachment;
    _relation regclass;
    _from text;
begin
    select a.* into strict _a from pgcombine.attachment a where a.id = enqueue_truncated.id;
    for _relation in
        with recursive tree (relation) as (
            select enqueue_truncated.relation
            union all
            select i.inhrelid::regclass
            from tree t
            join pg_class c on c.oid = t.relation and c.relkind = 'p'
            join pg_inherits i on i.inhparent = t.relation
            where not exists (select from pg_trigger g where g.tgrelid = i.inhrelid and g.tgtype & 32 = 32
                              and g.tgname = format('pgcombine_%s_truncate', _a.queue))
        )
        select t.relation from tree t join pg_class c on c.oid = t.relation where c.relkind <> 'p'
    loop
        if current_setting('transaction_isolation') <> 'read committed' then
            raise exception 'truncate of %, which is attached to queue "%", needs isolation level read committed',
                _relation, _a.queue
                using errcode = 'PC003',
                    hint = 'at other levels truncate also removes rows that the transaction can''t see; or delete the '
                    'rows instead';
        end if;
        _from := 'only ' || _relation;
        if not has_any_column_privilege(_relation, 'select') then -- a right on the parent is enough
            _from := format('(select * from %s where tableoid = %s)', _a.source, _relation::oid);
        end if;
        if row_security_active(case when _from like 'only %' then _relation else _a.source end) then
            raise exception 'row security hides rows of % from role "%", so queue "%" can''t take back the rows that '
                'truncate removes',
                    _relation, current_user, _a.queue
                using errcode = 'PC003',
                    hint = 'delete the rows, or truncate as a role that row security doesn''t bind';
        end if;
        execute pgcombine_internal.attached_statement(_a, _from, null);
    end loop;
end
$$;
