-- pgcombine_internal.shallow(document) → boolean
-- Returns whether programs can read this document: Python gives up at about a thousand levels. A key that the log takes
-- has fewer. Policies refuse other documents, for the reason given in representable.
create or replace function pgcombine_internal.shallow(document jsonb)
returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select not jsonb_path_exists(document, 'strict $.**{501}')
$$;
