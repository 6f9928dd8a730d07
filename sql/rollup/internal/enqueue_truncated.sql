-- pgcombine_internal.enqueue_truncated(queue, relation, statement)
-- Enqueues updates that take back what the rows of a table have added to a rollup, before TRUNCATE removes these rows.
-- The trigger of a rollup's source calls the function. For a table with partitions it takes back the rows of the
-- partitions that lack this trigger.
--   relation   the table of the trigger: the source or one of its descendants
--   statement  the statement that takes back the rows of pgcombine_old
-- Tables written: <queue>_updates.
-- Errors: PC003 the isolation level isn't read committed, or row security hides rows that TRUNCATE removes.
create or replace function pgcombine_internal.enqueue_truncated(queue text, relation regclass, statement text)
returns void
language plpgsql
as $$
declare
    _source regclass;
    _relation regclass;
    _from text;
begin
    perform pgcombine_internal.require(current_setting('transaction_isolation') = 'read committed', 'PC003',
        format('truncate of %s, the source of rollup "%s", needs isolation level read committed', relation, queue),
        'delete the rows, or begin transaction isolation level read committed: at other levels truncate also removes '
        'rows that the transaction can''t see');
    select r.source into _source from pgcombine.rollup r where r.queue = enqueue_truncated.queue;
    for _relation in
        with recursive tree (relation) as (
            select enqueue_truncated.relation
            where enqueue_truncated.relation in (select pgcombine_internal.descendants(_source))
            union all
            select i.inhrelid::regclass
            from tree t
            join pg_class c on c.oid = t.relation and c.relkind = 'p'
            join pg_inherits i on i.inhparent = t.relation
            where not exists (select from pg_trigger g where g.tgrelid = i.inhrelid and g.tgtype & 32 = 32
                              and g.tgname = format('~pgcombine_%s_truncate', enqueue_truncated.queue))
        )
        select t.relation from tree t join pg_class c on c.oid = t.relation where c.relkind <> 'p'
    loop
        _from := format('only %s', _relation);
        if not has_any_column_privilege(_relation, 'select') then -- the role may read the table through the source
            _from := format('(select * from %s where tableoid = %s)', _source, _relation::oid);
        end if;
        if row_security_active(case when _from like 'only %' then _relation else _source end) then
            raise exception 'row security hides rows of % from role "%", so rollup "%" can''t take back the rows that '
                'truncate removes', _relation, current_user, queue
                using errcode = 'PC003', hint = 'delete the rows, or exempt this role from row security; for the '
                    'table''s owner: alter table … no force row level security';
        end if;
        execute format('with pgcombine_old as (select * from %s) ', _from) || statement;
    end loop;
end
$$;
