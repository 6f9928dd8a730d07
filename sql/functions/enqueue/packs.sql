-- pgcombine.packs(queue) → boolean
-- Whether a row of the queue's updates may hold many (see enqueue_function).
create or replace function pgcombine.packs(queue text)
returns boolean
language sql stable
as $$
    select exists (
        select from pg_attribute a
        where a.attrelid = to_regclass(format('pgcombine.%I', packs.queue || '_updates')) and a.attname = 'pgcombine_0' and not a.attisdropped)
$$;
