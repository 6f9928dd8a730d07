-- pgcombine_internal.attach_triggers(id)
-- Makes the triggers of an attached table that are missing or belong to an older version. If it makes any, writers of
-- the table wait until the caller's transaction ends.
-- Errors: 42501 the caller lacks the right to make triggers of the table; PC002 the table is attached to the queue
-- twice, by itself and as part of another table.
create or replace function pgcombine_internal.attach_triggers(id integer)
returns void
language plpgsql
as $$
declare
    _function constant text := format('pgcombine_internal.%I',
        pgcombine_internal.attached_function(attach_triggers.id));
    _t record;
begin
    for _t in select * from pgcombine_internal.attached_triggers(attach_triggers.id) t where t.own
        and t.state = 'missing' loop
        execute format('create or replace trigger %I %s execute function %s()', _t.name, _t.definition, _function);
    end loop;
exception when insufficient_privilege then
    raise exception 'the triggers of % can''t be made: %', _t.relation, sqlerrm
        using errcode = '42501', hint = format('grant trigger on %s to %I', _t.relation, current_user);
    when duplicate_object then
        raise exception 'table % is attached twice to a queue, as itself and as part of another table', _t.relation
            using errcode = 'PC002', hint = 'detach one of the two';
end
$$;
