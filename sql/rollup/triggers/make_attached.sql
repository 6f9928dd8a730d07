-- pgcombine_internal.make_attached() trigger, after insert, on pgcombine.attachment
-- Makes the trigger function of a table that was attached.
-- Runs with its owner's rights, since the trigger function belongs to the schema; that function itself runs with the
-- rights of the role that changes the table. The policy on pgcombine.attachment (grants.sql) says who may insert: the
-- owner of the attached table. Such a role can insert without attach, so the trigger repeats the checks of attach. The
-- function's body is checked regardless of the role's settings.
-- An upgrade makes the functions of all attached tables again while writers wait, so their number is bounded.
-- Errors: those of check_attach; PC003 the table's owner has attached a hundred tables to the queue; 42601 the mapping
-- doesn't parse; 42501 the trigger's table isn't pgcombine.attachment.
create or replace function pgcombine_internal.make_attached()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set check_function_bodies = on
as $$
begin
    if tg_relid <> 'pgcombine.attachment'::regclass then -- any role may make such a trigger of a table of its own
        raise exception 'table % isn''t pgcombine.attachment', tg_relid::regclass using errcode = '42501',
            hint = 'drop the trigger';
    end if;
    perform pgcombine_internal.check_attach(new.queue, new.source, false);
    perform pgcombine_internal.require(count(*) <= 100, 'PC003',
        format('role "%s" has attached 100 tables to queue "%s"', min(pg_get_userbyid(c.relowner)), new.queue),
        'detach a table; of a partitioned table attach the parent alone')
    from pgcombine.attachment a
    join pg_class c on c.oid = a.source
    join pg_class s on s.oid = new.source and s.relowner = c.relowner
    where a.queue = new.queue
      and not pg_has_role(c.relowner, (select n.nspowner from pg_namespace n where n.nspname = 'pgcombine'), 'usage');
    perform pgcombine_internal.generate_attached(new.id);
    return null;
end
$$;
create or replace trigger pgcombine_attached after insert on pgcombine.attachment
    for each row execute function pgcombine_internal.make_attached();
