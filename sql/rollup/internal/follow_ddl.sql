-- pgcombine_internal.follow_ddl() event trigger, after alter table and create table
-- Brings rollups in line with a changed source. The rows of a table that has become a part of the source are enqueued,
-- those of a former part are taken back, and triggers are made. Trigger functions are made again if a column was
-- renamed. A source must not become a part of another table, since statements on that table would be missed.
-- Runs with its owner's rights: the role that changes the table needs none on the rollup.
-- Tables written: <rollup>_updates.
-- Errors: PC003 the source would become a part of another table, or rows come or go at an isolation level other than
-- read committed.
create or replace function pgcombine_internal.follow_ddl()
returns event_trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set row_security = off -- a policy of the source would run with this function's rights
as $$
declare
    _rollup pgcombine.rollup;
    _part record;
    _problem text;
    _item text;
    _any boolean;
begin
    perform pgcombine_internal.caller();
    if current_setting('pgcombine.making_triggers', true) = 'on' then
        return;
    end if;
    for _rollup in
        select r.* from pgcombine.rollup r join pg_class c on c.oid = r.source
        join pg_proc p on p.pronamespace = 'pgcombine_internal'::regnamespace and p.proname = r.queue || '_rollup'
        -- skips other rollups, so that the statement neither waits for their sources nor fails because of them
        where exists (
            select from pg_event_trigger_ddl_commands() d
            where d.objid in (select pgcombine_internal.descendants(r.source)
                              union all select i.inhparent from pg_inherits i where i.inhrelid = r.source
                              union all select t.tgrelid from pg_trigger t where t.tgfoid = p.oid))
        order by r.queue
    loop
        select format('%s, the source of rollup "%s", can''t become a part of %s: statements on that table would be '
            'missed', _rollup.source, _rollup.queue, i.inhparent::regclass) into _problem
        from pg_inherits i where i.inhrelid = _rollup.source;
        perform pgcombine_internal.require(_problem is null, 'PC003', _problem,
            format('drop the rollup first (select pgcombine.drop_rollup(%L)), then make it of the whole table',
                _rollup.queue));
        if exists (select from pg_proc p where p.oid = format('pgcombine_internal.%I()', _rollup.queue
                || '_rollup')::regprocedure and p.prosrc <> pgcombine_internal.rollup_trigger(_rollup)) then
            perform pgcombine_internal.generate_rollup(_rollup.queue);
        end if;
        for _part in
            with part as (select d.oid from pgcombine_internal.descendants(_rollup.source) d (oid)),
            marked as (
                select t.tgrelid as oid from pg_trigger t
                where t.tgname = 'pgcombine_' || _rollup.queue || '_truncate'
                  and t.tgfoid = format('pgcombine_internal.%I()', _rollup.queue || '_rollup')::regprocedure)
            select c.oid::regclass as relation, c.relkind, m.oid is null as comes
            from (select p.oid from part p union select m.oid from marked m) a
            join pg_class c on c.oid = a.oid
            left join part p on p.oid = a.oid
            left join marked m on m.oid = a.oid
            where c.relkind in ('r', 'p') and (p.oid is null or m.oid is null)
            order by c.oid
        loop
            if _part.relkind = 'r' then
                execute format('select exists (select from only %s)', _part.relation) into _any;
                perform pgcombine_internal.require(not _any
                    or current_setting('transaction_isolation') = 'read committed', 'PC003',
                    format('%s has rows that rollup "%s" must follow, which needs isolation level read committed',
                        _part.relation, _rollup.queue), 'begin transaction isolation level read committed');
                if _any then
                    _item := pgcombine_internal.rollup_relation(_rollup, 'only ' || _part.relation);
                    execute pgcombine_internal.rollup_statement(_rollup, case when not _part.comes then _item end,
                        case when _part.comes then _item end);
                end if;
            end if;
            if not _part.comes then
                execute (
                    select string_agg(format('drop trigger %I on %s', t.tgname, _part.relation), '; ')
                    from pg_trigger t join pg_proc p on p.oid = t.tgfoid
                    where t.tgrelid = _part.relation and t.tgparentid = 0 and p.proname = _rollup.queue || '_rollup'
                      and p.pronamespace = 'pgcombine_internal'::regnamespace);
            end if;
        end loop;
        perform pgcombine_internal.make_rollup_triggers(_rollup.queue);
    end loop;
end
$$;
revoke execute on function pgcombine_internal.follow_ddl() from public;
