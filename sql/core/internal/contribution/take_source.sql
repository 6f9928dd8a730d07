-- pgcombine_internal.take_source(queue, source) → bigint
-- Returns the id of a source, and locks the source until the transaction ends. Every call writes the source's row, so a
-- call with an older snapshot fails.
-- Tables written: pgcombine.contribution.
-- Errors: PC004 the source is null, empty or too long; 40001 above read committed: the source has contributed since the
-- snapshot.
create or replace function pgcombine_internal.take_source(queue text, source text)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _source constant text := pgcombine_internal.checked_token(queue, source, 'source');
    _id bigint;
begin
    -- before the row, since truncate_queue and drop_queue lock the table before they delete the row
    execute format('lock table only pgcombine.%I in row exclusive mode', queue || '_updates');
    loop
        -- first, since an insert under an older snapshot wouldn't notice that another session has deleted the row
        update pgcombine.contribution c set at = now() where (c.queue, c.source) = (take_source.queue, _source)
        returning c.id into _id;
        exit when found;
        insert into pgcombine.contribution as c (queue, source) values (take_source.queue, _source)
        on conflict do nothing returning c.id into _id;
        exit when found;
    end loop;
    return _id;
end
$$;
