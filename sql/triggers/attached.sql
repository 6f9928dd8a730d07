-- pgcombine.attached() trigger, statement level, on a user's table (see attach); arguments: the queue, the columns
-- of the table that the mapping reads, the statement that enqueues, the search path under which it was attached: what
-- the mapping names is the same whoever changes the table
-- Errors: PC003 a column of the table was renamed or dropped.
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
