-- pgcombine.drop_generated(queue)
-- Drops what belongs to a queue beside its updates and values: its views, its function and its quarantine.
create or replace function pgcombine.drop_generated(queue text)
returns void
language plpgsql
as $$
declare
    _function regprocedure;
begin
    execute format('drop view pgcombine.%I, pgcombine.%I', drop_generated.queue || '_current', drop_generated.queue || '_pending');
    for _function in -- not for every queue there is one
        select p.oid from pg_proc p
        where p.pronamespace = 'pgcombine'::regnamespace and p.proname = drop_generated.queue || '_enqueue'
    loop
        execute format('drop function %s', _function);
    end loop;
    execute format('drop table pgcombine.%I, pgcombine.%I', drop_generated.queue || '_quarantine', drop_generated.queue || '_quarantine_keys');
end
$$;
