-- pgcombine_internal.valid_document(document, bytes) → boolean
-- Returns whether a document has at most this number of bytes before compression, and at most 64 levels of objects and
-- arrays.
create or replace function pgcombine_internal.valid_document(document jsonb, bytes integer)
returns boolean
language plpgsql immutable parallel safe
as $$
declare
    _size constant integer := pg_column_size(array[document]); -- array[…] detoasts the document
begin
    return _size < 8 * 64 -- too small for more than 64 levels, of 8 bytes each
        or _size <= bytes and not jsonb_path_exists(document, 'strict $.**{65}');
end
$$;
