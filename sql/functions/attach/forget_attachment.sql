-- pgcombine.forget_attachment(id)
-- Forgets an attached table that has no triggers any more, or was dropped: what detach does last. With the owner's
-- rights: whoever could drop the triggers may forget them.
-- Tables written: pgcombine.attachment.
-- Errors: 2BP01 it has triggers.
create or replace function pgcombine.forget_attachment(id integer)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _function constant name := pgcombine.attached_function(forget_attachment.id);
begin
    if exists (select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
               where p.pronamespace = 'pgcombine'::regnamespace and p.proname = _function) then
        raise exception 'function pgcombine.% has triggers', _function
            using errcode = '2BP01', hint = 'detach their table';
    end if;
    if _function is not null then
        execute format('drop function if exists pgcombine.%I()', _function);
    end if;
    delete from pgcombine.attachment a where a.id = forget_attachment.id;
end
$$;
