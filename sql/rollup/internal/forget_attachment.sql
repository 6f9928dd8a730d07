-- pgcombine_internal.forget_attachment(id)
-- The last step of detach: deletes the record of an attached table that has no triggers any more or was dropped.
-- If another role uses the trigger function elsewhere, the function stays until an upgrade drops it, and does nothing
-- from now on.
-- Runs with its owner's rights, for the owner of the table, and for the schema's owner if the table was dropped.
-- Tables written: pgcombine.attachment.
-- Errors: 2BP01 the table still has triggers; 42501 the caller lacks the right to detach it.
create or replace function pgcombine_internal.forget_attachment(id integer)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _role constant name := pgcombine_internal.caller();
    _function constant name := pgcombine_internal.attached_function(forget_attachment.id);
    _source regclass;
begin
    select a.source into _source from pgcombine.attachment a where a.id = forget_attachment.id;
    if not pg_has_role(_role, coalesce((select c.relowner from pg_class c where c.oid = _source),
                                       (select n.nspowner from pg_namespace n where n.nspname = 'pgcombine')),
                                           'usage') then
        raise exception 'permission denied: % may not detach %', _role, _source
            using errcode = '42501', hint = 'let the owner of the table detach it';
    end if;
    perform pgcombine_internal.require(not exists (
        select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
        where p.pronamespace = 'pgcombine_internal'::regnamespace and p.proname = _function
          and t.tgrelid in (select pgcombine_internal.descendants(_source))),
        '2BP01', format('function pgcombine_internal.%s has triggers', _function),
        'pgcombine.detach drops the triggers');
    if _function is not null then
        begin
            execute format('drop function if exists pgcombine_internal.%I()', _function);
        exception when dependent_objects_still_exist then
            execute format('create or replace function pgcombine_internal.%I() returns trigger language plpgsql
                            as %L', _function, 'begin return null; end');
            execute format('alter function pgcombine_internal.%I() rename to %I', _function,
                format('gone %s %s', to_regproc(format('pgcombine_internal.%I', _function))::oid, _function));
        end;
    end if;
    delete from pgcombine.attachment a where a.id = forget_attachment.id;
end
$$;
