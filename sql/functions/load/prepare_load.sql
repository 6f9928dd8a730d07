-- pgcombine.prepare_load(load, attempts, expected)
-- Notes which attempts of a load succeeded and how many rows these have written, where somebody else is to end it:
-- end_load may then be called without them, in any transaction, together with other statements.
-- Tables written: pgcombine.spark_load.
-- Errors: PC030 the load has ended; 42501 the caller may not insert into the queue that it is for.
create or replace function pgcombine.prepare_load(load uuid, attempts xid8[], expected bigint)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _load pgcombine.spark_load;
begin
    update pgcombine.spark_load l
    set attempts = prepare_load.attempts, expected = prepare_load.expected, seen_at = now()
    where l.load = prepare_load.load and l.ended_at is null
    returning l.* into _load;
    if not found then
        raise exception 'the load % has ended', prepare_load.load
            using errcode = 'PC030', hint = 'it was given up: run it again with the same run id';
    end if;
    if not has_any_column_privilege(pgcombine.caller(),
        format('pgcombine.%I', _load.queue || case _load.kind when 'values' then '_values' else '_updates' end), 'insert')
    then
        raise exception 'permission denied: the load isn''t one of %', pgcombine.caller()
            using errcode = '42501', hint = 'it takes the right to insert into the queue''s table';
    end if;
end
$$;
