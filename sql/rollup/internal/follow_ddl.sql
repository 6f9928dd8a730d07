-- pgcombine_internal.follow_ddl() event trigger, after create table, create schema and alter …
-- Brings rollups in line with a changed source. The rows of a table that has become a part of the source are enqueued,
-- those of a former part are taken back unless they are kept, and missing triggers are made. Generated objects are
-- recreated if rollup_outdated says so. A source must not become a part of another table, since statements on that
-- table would be missed.
-- Runs with its owner's rights: the role that changes the table needs no right on the rollup.
-- Tables written: <rollup>_updates, pgcombine.rollup_part; those of generate_rollup.
-- Errors: PC003 the source would become a part of another table, the expression of a generated column that the rollup
-- reads was changed, or rows may come or go at an isolation level other than read committed; those of
-- generate_rollup and make_rollup_triggers.
create or replace function pgcombine_internal.follow_ddl()
returns event_trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
set quote_all_identifiers = off
set row_security = off -- a policy of the source would run with this function's rights
as $$
declare
    _queue text;
    _rollup pgcombine.rollup;
    _part record;
    _problem text;
    _item text;
    _any boolean;
begin
    if to_regclass('pgcombine.rollup') is null then
        return;
    elsif exists (select from pgcombine.rollup_part p where p.part = 0) then -- see make_rollup_triggers
        return;
    end if;
    perform pgcombine_internal.caller();

    for _queue in
        with recursive command as (
            select d.objid from pg_event_trigger_ddl_commands() d where d.schema_name is distinct from 'pg_temp'
        ), above (objid) as ( -- with the tables of which these tables are parts
            select c.objid from command c
            union
            select i.inhparent from above a join pg_inherits i on i.inhrelid = a.objid
        )
        select r.queue from pgcombine.rollup r join pg_class s on s.oid = r.source
        cross join lateral to_regclass(format('pgcombine_internal.%I', r.queue || '_expressions')) e (view)
        where r.source in (select a.objid from above a)
           or exists (select from pgcombine.rollup_part p join command c on p.queue = r.queue and p.part = c.objid)
           or exists (select from pg_inherits i join command c on i.inhrelid = r.source and i.inhparent = c.objid)
           or tg_tag in ('ALTER EXTENSION', 'ALTER SCHEMA')
           or tg_tag <> all ('{ALTER TABLE,CREATE SCHEMA,CREATE TABLE}') and exists (
               select from pg_depend d join command c on d.refobjid = c.objid
               where d.objid in (to_regclass(format('pgcombine.%I', r.queue || '_values')), e.view,
                   (select w.oid from pg_rewrite w where w.ev_class = e.view)))
        order by r.queue
    loop
        if pgcombine_internal.refresh_types(_queue) then
            perform pgcombine_internal.regenerate(_queue);
        end if;
        _rollup := pgcombine_internal.get_rollup(_queue);
        continue when _rollup.definition is null;
        select format('%s, the source of rollup "%s", can''t become a part of %s: statements on that table would be '
            'missed', _rollup.source, _rollup.queue, i.inhparent::regclass) into _problem
        from pg_inherits i where i.inhrelid = _rollup.source;
        perform pgcombine_internal.require(_problem is null, 'PC003', _problem,
            format('drop the rollup first (select pgcombine.drop_rollup(%L)), then make it of the whole table',
                _rollup.queue));
        select format('rollup "%s" reads the generated column "%s" of %s', _rollup.queue, g.name, _rollup.source)
        into _problem
        from pgcombine_internal.generated_columns(_rollup) g
        where g.changed;
        perform pgcombine_internal.require(_problem is null, 'PC003', _problem, format('drop the rollup first (select '
            'pgcombine.drop_rollup(%L)), change the column''s expression, and make the rollup again', _rollup.queue));
        if pgcombine_internal.rollup_outdated(_rollup) then
            perform pgcombine_internal.generate_rollup(_rollup.queue);
        end if;
        for _part in
            select c.oid::regclass as relation, c.relkind, d.oid is not null as comes
            from pgcombine_internal.descendants(_rollup.source) d (oid)
            full join (select p.part from pgcombine.rollup_part p where p.queue = _rollup.queue) p on p.part = d.oid
            join pg_class c on c.oid = coalesce(d.oid, p.part)
            where c.relkind in ('r', 'p') and (d.oid is null or p.part is null)
            order by c.oid
        loop
            if _part.relkind = 'r' then
                _any := pg_relation_size(_part.relation) > 0; -- an older snapshot may not show the rows
                perform pgcombine_internal.require(not _any
                    or current_setting('transaction_isolation') = 'read committed', 'PC003',
                    format('%s may have rows that rollup "%s" must follow, which needs isolation level read committed',
                        _part.relation, _rollup.queue), 'begin transaction isolation level read committed');
                if _any then
                    -- waits for a backfill or a repair: its statement may see the updates below, but not the new part
                    perform from pgcombine.rollup r where r.queue = _rollup.queue for no key update;
                    _item := pgcombine_internal.rollup_relation(_rollup, 'only ' || _part.relation);
                    execute format('insert into pgcombine.%I (%s) %s', _rollup.queue || '_updates',
                        pgcombine_internal.column_list(_rollup.queue), pgcombine_internal.rollup_owned(_rollup,
                            pgcombine_internal.rollup_rows(_rollup, _item,
                                case when _part.comes then '+' else '-' end)));
                end if;
            end if;
            if not _part.comes then
                perform pgcombine_internal.forget_part(_rollup.queue, _part.relation);
            end if;
        end loop;
        perform pgcombine_internal.make_rollup_triggers(_rollup.queue);
    end loop;
end
$$;
revoke execute on function pgcombine_internal.follow_ddl() from public;
