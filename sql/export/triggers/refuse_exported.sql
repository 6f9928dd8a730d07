-- pgcombine_internal.refuse_exported() trigger, before delete, on pgcombine.queue
-- Refuses to delete an exported queue's row by hand. drop_queue drops the exports first and raises if entries would be
-- lost.
-- Errors: PC005 the queue is exported.
create or replace function pgcombine_internal.refuse_exported()
returns trigger
language plpgsql
as $$
declare
    _export text;
begin
    select e.export into _export from pgcombine.export e where e.queue = old.queue order by e.export limit 1;
    if found then
        raise exception 'queue "%" has the export "%"', old.queue, _export
            using errcode = 'PC005',
                hint = format('select pgcombine.drop_queue(%L, force => true) drops both', old.queue);
    end if;
    return old;
end
$$;
create or replace trigger pgcombine_exported before delete on pgcombine.queue
    for each row execute function pgcombine_internal.refuse_exported();
