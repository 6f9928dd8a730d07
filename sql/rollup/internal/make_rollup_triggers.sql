-- pgcombine_internal.make_rollup_triggers(queue)
-- Makes the missing triggers of a rollup's source, and enables disabled ones. If there are any, writers of the table
-- wait until the caller's transaction ends. The triggers are "enable always", since rows also count if logical
-- replication or a session with session_replication_role = replica writes them.
-- Tables written: pgcombine.rollup_part.
-- Errors: 42501 the caller lacks the right to make triggers of the table.
create or replace function pgcombine_internal.make_rollup_triggers(queue text)
returns void
language plpgsql
as $$
declare
    _t record;
begin
    for _t in
        select * from pgcombine_internal.rollup_triggers(make_rollup_triggers.queue) t
        where t.own and t.state is not null
    loop
        -- Follow_ddl would follow each alter table below, and enqueue a part's rows again. It sees this row, which no
        -- other transaction sees and no other role can write. Another transaction that makes triggers waits for it.
        insert into pgcombine.rollup_part (queue, part) values (make_rollup_triggers.queue, 0) on conflict do nothing;
        if _t.state = 'missing' then
            execute format('create or replace trigger %I %s execute function pgcombine_internal.%I()', _t.name,
                _t.definition, queue || '_rollup');
        end if;
        execute format('alter table %s enable always trigger %I', _t.relation, _t.name);
    end loop;
    delete from pgcombine.rollup_part p where p.queue = make_rollup_triggers.queue and p.part = 0;
    insert into pgcombine.rollup_part (queue, part)
    select r.queue, d from pgcombine.rollup r cross join lateral pgcombine_internal.descendants(r.source) d
    where r.queue = make_rollup_triggers.queue
    on conflict do nothing;
exception when insufficient_privilege then
    raise exception 'the triggers of % can''t be made: %', _t.relation, sqlerrm
        using errcode = '42501', hint = format('let role "%s" inherit the rights of the table''s owner', current_user);
end
$$;
