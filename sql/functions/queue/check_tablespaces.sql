-- pgcombine.check_tablespaces(tablespaces)
-- Refuses names that aren't tablespaces; null and empty are no tablespaces to check.
-- Errors: PC003.
create or replace function pgcombine.check_tablespaces(tablespaces text[])
returns void
language plpgsql stable
as $$
declare
    _unknown text;
begin
    select coalesce(t.name, 'null') into _unknown
    from unnest(check_tablespaces.tablespaces) t (name)
    where not exists (select from pg_tablespace s where s.spcname = t.name and s.spcname <> 'pg_global')
    limit 1;
    if found then
        raise exception 'there is no tablespace "%"', _unknown
            using errcode = 'PC003', hint = (select 'tablespaces: ' || string_agg(s.spcname, ', ' order by s.spcname)
                                             from pg_tablespace s where s.spcname <> 'pg_global');
    end if;
end
$$;
