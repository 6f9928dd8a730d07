-- pgcombine_internal.sound_document(document, bytes [, levels]) → boolean
-- Returns whether a document takes at most a number of bytes before compression, and has at most so many levels of
-- objects and arrays. Merging takes time for each level.
-- It is PL/pgSQL, since each insert prepares a check constraint anew for each partition that it writes to, and a longer
-- expression would take longer.
create or replace function pgcombine_internal.sound_document(document jsonb, bytes integer, levels integer default 64)
returns boolean
language plpgsql immutable parallel safe
as $$
declare
    _size constant integer := pg_column_size(array[document]); -- array[…] makes the document whole
begin
    return _size < 8 * levels -- a level takes 8 bytes
        or _size <= bytes and not jsonb_path_exists(document, format('strict $.**{%s}', levels + 1)::jsonpath);
end
$$;
