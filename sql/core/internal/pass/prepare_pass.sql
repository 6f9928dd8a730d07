-- pgcombine_internal.prepare_pass(statement [, types]) → text
-- Prepares the statement of a pass in the session, unless it is, and returns its name there: the digest of its text. A
-- statement that no pass uses any more is deallocated when there are a hundred others.
create or replace function pgcombine_internal.prepare_pass(statement text,
    types text default 'boolean, tid, tid, txid_snapshot[], bigint, txid_snapshot, boolean[], bigint, bigint')
returns text
language plpgsql
as $$
declare
    _name constant text := 'pgcombine_' || md5(statement);
    _oldest text;
begin
    if not exists (select from pg_prepared_statements p where p.name = _name) then
        select case when count(*) > 100 then (array_agg(p.name order by p.prepare_time))[1] end into _oldest
        from pg_prepared_statements p where p.name ~ '^pgcombine_[0-9a-f]{32}$';
        if _oldest is not null then
            execute format('deallocate %I', _oldest);
        end if;
        execute format('prepare %I (%s) as %s', _name, types, statement);
    end if;
    return _name;
end
$$;
