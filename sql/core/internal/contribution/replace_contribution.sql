-- pgcombine_internal.replace_contribution(queue, source, rows [, updates, stream]) → bigint
-- Replaces the contribution of a source by rows, and returns the number of updates that this enqueues. The caller has
-- called open_contributions.
--   rows     a from item that has the queue's columns
--   updates  $2 in rows
--   stream   the query that may add rows later (see add_contribution); null: none
-- Tables written: <queue>_updates, <queue>_contributions; pgcombine.contribution.
-- Errors: 22003 (22008 for interval) a sum, or the difference from the former value, is beyond its type's range; 23514
-- a value is infinite or NaN; those of take_source, and of an insert into <queue>_updates.
create or replace function pgcombine_internal.replace_contribution(queue text, source text, rows text,
    updates jsonb default null, stream text default null)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _id constant bigint := pgcombine_internal.take_source(queue, source);
    _updates bigint;
    _left boolean;
begin
    execute format('with pgcombine_rows as (select * from %s)', rows)
        || (pgcombine_internal.require_queue(queue)).contribution using _id, updates;
    get diagnostics _updates = row_count;
    execute format('select exists (select from pgcombine.%I where pgcombine_source = $1)', queue || '_contributions')
    into _left using _id;
    update pgcombine.contribution c set stream = replace_contribution.stream
    where c.id = _id and c.stream is distinct from replace_contribution.stream;
    if not _left and stream is null then
        delete from pgcombine.contribution c where c.id = _id;
    end if;
    return _updates;
end
$$;
