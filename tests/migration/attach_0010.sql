-- pgcombine.attach and pgcombine.attached as they were at revision 0010, for the test of upgrades.
update pgcombine.combiner set fold = replace(replace(fold, '{value}', '%1$s'), '{type}', '%3$s');
create or replace function pgcombine.inverse_of(combiner text)
returns text
language sql immutable
as $$
    select case when combiner in ('sum', 'count') then '(-%1$s)::%2$s' end
$$;

create or replace function pgcombine.attached()
returns trigger
language plpgsql
as $$
declare
    _path constant text := current_setting('search_path');
    _missing name;
begin
    select u.name into _missing
    from unnest(tg_argv[1]::name[]) u (name)
    where not exists (select from pg_attribute a where a.attrelid = tg_relid and a.attname = u.name and not a.attisdropped)
    limit 1;
    if found then
        raise exception 'table % has no column "%" any more, which the mapping of queue "%" reads', tg_relid::regclass, _missing, tg_argv[0]
            using errcode = 'PC003', hint = format('select pgcombine.detach(%L, %L), then attach with a mapping over the columns of now',
                                                   tg_argv[0], tg_relid::regclass);
    end if;
    if tg_nargs > 3 then -- not where an earlier version attached
        perform set_config('search_path', tg_argv[3], true);
    end if;
    -- the table by its name of now
    execute case tg_op when 'TRUNCATE' then replace(tg_argv[2], 'from pgcombine_truncated as', format('from %s as', tg_relid::regclass)) else tg_argv[2] end;
    perform set_config('search_path', _path, true);
    return null;
end
$$;

create or replace function pgcombine.attach(queue text, source regclass, mapping text, existing boolean default true)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(attach.queue);
    _name constant text := 'pgcombine_' || _queue.queue;
    _mapping constant text := rtrim(attach.mapping, E' \t\r\n;');
    _alias constant text := (select quote_ident(c.relname) from pg_class c where c.oid = attach.source);
    _from constant text := format('%%s as %s cross join lateral (%s) as pgcombine_mapped', replace(_alias, '%', '%%'), replace(_mapping, '%', '%%'));
    _wrong text;
    _probe text;
    _found name[];
    _used name[];
    _columns text;
    _keys text;
    _plus text;
    _minus text;
    _fold text;
    _differs text;
    _into text;
    _grouped text;
    _path constant text := (select coalesce(string_agg(quote_ident(p), ', '), '') from unnest(current_schemas(false)) p);
begin
    select string_agg(format('"%s" (%s)', c.name, c.combiner), ', ' order by c.position) into _wrong
    from pgcombine.queue_column c
    where c.queue = _queue.queue and c.role = 'value' and pgcombine.inverse_of(c.combiner) is null;
    if _wrong is not null then
        raise exception 'queue "%" can''t be attached: what an old row added can''t be taken back from column %', _queue.queue, _wrong
            using errcode = 'PC003', hint = 'only sum and count have an inverse';
    end if;
    if exists (select from pg_trigger t where t.tgrelid = attach.source and t.tgname = _name || '_insert'
               and t.tgfoid = 'pgcombine.attached'::regproc) then
        raise exception 'queue "%" is attached to % already', _queue.queue, attach.source
            using errcode = 'PC002', hint = 'detach first';
    end if;
    if existing and current_setting('transaction_isolation') <> 'read committed' then -- rows committed until the lock must be seen
        raise exception 'attach of queue "%" needs isolation level read committed', _queue.queue
            using errcode = 'PC003', hint = 'or pass existing => false';
    end if;

    -- as a view it is a single select; its columns and those of the table it reads are in the catalog
    _probe := format('pgcombine_probe_%s', pg_backend_pid());
    begin
        execute format('create temporary view %I as select pgcombine_mapped.* from ' || _from, _probe, attach.source);
    exception when others then
        raise exception 'the mapping of queue "%" doesn''t work over %: %', _queue.queue, attach.source, sqlerrm
            using errcode = 'PC003', hint = 'a select over the columns of the row, its output columns named as the queue''s';
    end;
    select array_agg(a.attname) into _found
    from pg_attribute a where a.attrelid = ('pg_temp.' || _probe)::regclass and a.attnum > 0;
    select array_agg(distinct a.attname) into _used
    from pg_rewrite r
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
        and d.refobjid = attach.source and d.refobjsubid > 0
    join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    where r.ev_class = ('pg_temp.' || _probe)::regclass;
    execute format('drop view pg_temp.%I', _probe);
    select string_agg(format('"%s"', f), ', ') into _wrong
    from unnest(_found) f where not exists (select from pgcombine.queue_column c where c.queue = _queue.queue and c.name = f);
    if _wrong is not null then
        raise exception 'the mapping gives column %, which queue "%" doesn''t have', _wrong, _queue.queue
            using errcode = 'PC003', hint = (select 'its columns: ' || string_agg(c.name, ', ' order by c.position)
                                             from pgcombine.queue_column c where c.queue = _queue.queue);
    end if;
    select string_agg(format('"%s"', c.name), ', ') into _wrong
    from pgcombine.queue_column c where c.queue = _queue.queue and c.role = 'key' and not c.name = any (_found);
    if _wrong is not null then
        raise exception 'the mapping lacks the key column % of queue "%"', _wrong, _queue.queue
            using errcode = 'PC003', hint = 'name its output columns as the queue''s';
    end if;

    select string_agg(format('%I', c.name), ', ' order by c.position),
           string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.role = 'key'),
           string_agg(format('%s::%s as %I', e.value, c.type, c.name), ', ' order by c.position),
           string_agg(format('%s as %I', case c.role when 'key' then format('%s::%s', e.value, c.type)
                             else format(pgcombine.inverse_of(c.combiner), format('(%s::%s)', e.value, c.type), c.type) end, c.name),
                      ', ' order by c.position),
           string_agg(format('%s as %I', format(k.fold, quote_ident(c.name), null, c.type), c.name), ', ' order by c.position)
               filter (where c.role = 'value'),
           string_agg(format('%s is distinct from ''0''::%s', format(k.fold, quote_ident(c.name), null, c.type), c.type),
                      ' or ' order by c.position)
               filter (where c.role = 'value')
    into _columns, _keys, _plus, _minus, _fold, _differs
    from pgcombine.queue_column c
    left join pgcombine.combiner k using (combiner)
    cross join lateral (select case when c.name = any (_found) then format('pgcombine_mapped.%I', c.name)
                                    else format('%L', k.initial) end as value) e
    where c.queue = _queue.queue;
    _plus := format('select %s from ', replace(_plus, '%', '%%')) || _from;
    _minus := format('select %s from ', replace(_minus, '%', '%%')) || _from;
    -- combined before it is enqueued: what stays the same in an edited row is no update
    _into := format('insert into pgcombine.%I (%s) select %s, %s from (', _queue.queue || '_updates', _columns, _keys, _fold);
    _grouped := format(') as pgcombine_rows group by %s having %s', _keys, _differs);

    execute format('create trigger %I after insert on %s referencing new table as pgcombine_new
                    for each statement execute function pgcombine.attached(%L, %L, %L, %L)', _name || '_insert', attach.source,
        _queue.queue, _used, _into || format(_plus, 'pgcombine_new') || _grouped, _path);
    execute format('create trigger %I after delete on %s referencing old table as pgcombine_old
                    for each statement execute function pgcombine.attached(%L, %L, %L, %L)', _name || '_delete', attach.source,
        _queue.queue, _used, _into || format(_minus, 'pgcombine_old') || _grouped, _path);
    execute format('create trigger %I after update on %s referencing old table as pgcombine_old new table as pgcombine_new
                    for each statement execute function pgcombine.attached(%L, %L, %L, %L)', _name || '_update', attach.source,
        _queue.queue, _used, _into || format(_minus, 'pgcombine_old') || ' union all ' || format(_plus, 'pgcombine_new') || _grouped, _path);
    execute format('create trigger %I before truncate on %s
                    for each statement execute function pgcombine.attached(%L, %L, %L, %L)', _name || '_truncate', attach.source,
        _queue.queue, _used, _into || format(_minus, 'pgcombine_truncated') || _grouped, _path);
    if existing then -- the triggers' lock keeps writers away
        begin
            execute _into || format(_plus, attach.source) || _grouped;
        exception when not_null_violation then
            raise exception 'the mapping of queue "%" gives keys that are null: %', _queue.queue, sqlerrm
                using errcode = 'PC003', hint = 'leave such rows out of it by a where clause';
        end;
    end if;
end
$$;
