-- pgcombine_internal.probe_mapping(queue, source, alias, mapping) → (columns, reads)
-- Returns the output columns of a mapping, and the columns of the table that it reads. Raises unless the mapping is one
-- select over a row of the table that gives the queue's keys.
--   alias  the name under which the mapping reads the row as a whole
-- Errors: PC003 a mapping that doesn't work.
create or replace function pgcombine_internal.probe_mapping(queue text, source regclass, alias text, mapping text,
    out columns name[], out reads name[])
language plpgsql
as $$
declare
    _probe constant text := format('pgcombine_probe_%s', pg_backend_pid());
    _wrong text;
begin
    -- A view proves that the mapping is a single select. The catalog then lists its output columns and the columns it
    -- reads.
    begin
        execute format(E'create temporary view %I as select pgcombine_mapped.* from %s as %I cross join lateral (%s\n) '
            'as pgcombine_mapped',
                       _probe, probe_mapping.source, alias, mapping);
    exception when others then
        raise exception 'the mapping of queue "%" doesn''t work over %: %', probe_mapping.queue,
            probe_mapping.source, sqlerrm
            using errcode = 'PC003',
                hint = 'a select over the columns of the row, its output columns named as the queue''s';
    end;
    select coalesce(array_agg(a.attname), '{}') into columns
    from pg_attribute a where a.attrelid = ('pg_temp.' || _probe)::regclass and a.attnum > 0;
    select coalesce(array_agg(distinct a.attname), '{}') into reads
    from pg_rewrite r
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
        and d.refobjid = probe_mapping.source and d.refobjsubid > 0
    join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    where r.ev_class = ('pg_temp.' || _probe)::regclass;
    execute format('drop view pg_temp.%I', _probe);
    select string_agg(format('"%s"', f), ', ') into _wrong
    from unnest(columns) f where not exists (select from pgcombine.queue_column c where c.queue = probe_mapping.queue
        and c.name = f);
    if _wrong is not null then
        raise exception 'the mapping gives column %, which queue "%" doesn''t have', _wrong, probe_mapping.queue
            using errcode = 'PC003',
                hint = format('its columns: %s', pgcombine_internal.column_list(probe_mapping.queue));
    end if;
    select string_agg(format('"%s"', c.name), ', ') into _wrong
    from pgcombine.queue_column c where c.queue = probe_mapping.queue and c.role = 'key' and not c.name = any (columns);
    if _wrong is not null then
        raise exception 'the mapping lacks the key column % of queue "%"', _wrong, probe_mapping.queue
            using errcode = 'PC003', hint = 'name its output columns as the queue''s';
    end if;
end
$$;
