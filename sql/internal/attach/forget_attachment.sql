-- pgcombine_internal.forget_attachment(id)
-- Last step of detach: deletes the record of an attached table that has no triggers any more or was dropped.
-- Runs with its owner's rights. A role that may drop the triggers may also delete the record.
-- Tables written: pgcombine.attachment.
-- Errors: 2BP01 the table still has triggers; 42501 the caller may not detach it.
create or replace function pgcombine_internal.forget_attachment(id integer)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _function constant name := pgcombine_internal.attached_function(forget_attachment.id);
    _source regclass;
begin
    select a.source into _source from pgcombine.attachment a where a.id = forget_attachment.id;
    if not (case when exists (select from pg_class c where c.oid = _source)
                then has_table_privilege(pgcombine_internal.caller(), _source, 'trigger')
                else pg_has_role(pgcombine_internal.caller(), (select n.nspowner from pg_namespace n where n.nspname = 'pgcombine'), 'usage') end)
    then
        raise exception 'permission denied: % may not detach %', pgcombine_internal.caller(), _source
            using errcode = '42501', hint = 'let the owner of the table detach it';
    end if;
    perform pgcombine_internal.require(not exists (
        select from pg_trigger t join pg_proc p on p.oid = t.tgfoid where p.pronamespace = 'pgcombine_internal'::regnamespace and p.proname = _function),
        '2BP01', format('function pgcombine_internal.%s has triggers', _function), 'pgcombine.detach drops the triggers');
    if _function is not null then
        execute format('drop function if exists pgcombine_internal.%I()', _function);
    end if;
    delete from pgcombine.attachment a where a.id = forget_attachment.id;
end
$$;
