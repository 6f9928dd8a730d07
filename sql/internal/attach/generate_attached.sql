-- pgcombine_internal.generate_attached(id)
-- Makes the trigger function of an attached table, <queue>_attached_<id>.
-- The function's statements are fixed, so that PostgreSQL keeps their plans. Planning them for each row would cost
-- seven times as much.
-- Names in the mapping are looked up on the search path under which the table was attached.
-- generate_attached pins its own search path. So generating expressions are printed alike under every caller's path
-- (see check_attached), and no user's function can stand in for PostgreSQL's own: keep_attachment calls it with the
-- owner's rights.
create or replace function pgcombine_internal.generate_attached(id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $generate$
declare
    _a pgcombine.attachment;
    _old text;
    _new text;
    _old_rows text;
    _new_rows text;
    _columns name[];
    _expressions text[];
begin
    select a.* into strict _a from pgcombine.attachment a where a.id = generate_attached.id;
    _old := pgcombine_internal.attached_relation(_a.source, '(select old.*)');
    _new := pgcombine_internal.attached_relation(_a.source, '(select new.*)');
    _old_rows := pgcombine_internal.attached_relation(_a.source, 'pgcombine_old');
    _new_rows := pgcombine_internal.attached_relation(_a.source, 'pgcombine_new');
    if _new_rows <> 'pgcombine_new' then -- these from items compute virtual columns, so they read every column
        select array_agg(a.attname order by a.attnum),
               array_agg(case when a.attgenerated = 'v' then pg_get_expr(d.adbin, d.adrelid) end order by a.attnum)
        into _columns, _expressions
        from pg_attribute a
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = _a.source and a.attnum > 0 and not a.attisdropped;
    end if;

    execute format('create or replace function pgcombine_internal.%I() returns trigger language plpgsql %s as %L',
        pgcombine_internal.attached_function(_a.id),
        'set search_path = ' || case _a.path when '{}' then ''''''
                                else (select string_agg(quote_ident(p), ', ' order by n) from unnest(_a.path) with ordinality u (p, n)) end,
        format($body$
#variable_conflict use_column
begin
    if tg_level = 'ROW' then
        if tg_op = 'INSERT' then
            %1$s;
        elsif tg_op = 'DELETE' then
            %2$s;
        else
            %3$s;
        end if;
        return null;
    end if;
    if tg_op = 'TRUNCATE' and not exists (
        select from pgcombine.attachment a, pgcombine_internal.descendants(a.source) d where a.id = %7$s and d = tg_relid)
    then
        return null; -- it was a partition once
    end if;
    perform pgcombine_internal.check_attached(%7$s, tg_relid, %8$L, %9$L);
    if tg_op = 'TRUNCATE' then
        perform pgcombine_internal.enqueue_truncated(%7$s, tg_relid);
    elsif tg_when = 'BEFORE' then
        return null; -- the rows are enqueued one by one
    elsif tg_op = 'INSERT' then
        %4$s;
    elsif tg_op = 'DELETE' then
        %5$s;
    else
        %6$s;
    end if;
    return null;
end
$body$,
            pgcombine_internal.attached_statement(_a, null, _new), pgcombine_internal.attached_statement(_a, _old, null),
            pgcombine_internal.attached_statement(_a, _old, _new),
            pgcombine_internal.attached_statement(_a, null, _new_rows), pgcombine_internal.attached_statement(_a, _old_rows, null),
            pgcombine_internal.attached_statement(_a, _old_rows, _new_rows),
            _a.id, coalesce(_columns, _a.reads), _expressions));
end
$generate$;
