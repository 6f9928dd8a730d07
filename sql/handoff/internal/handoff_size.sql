-- pgcombine_internal.handoff_size(queue, payload) → integer
-- Returns the number of updates in a payload, after a check of the payload's form: one array for each column of the
-- queue, all of the same length.
-- Errors: 22023 the payload doesn't have this form.
create or replace function pgcombine_internal.handoff_size(queue text, payload text)
returns integer
language plpgsql stable
as $$
declare
    _columns constant text[] := payload::text[];
    _size constant integer := cardinality(_columns[1]::text[]);
begin
    if _size is null or cardinality(_columns) <> (select count(*) from pgcombine.queue_column c
        where c.queue = handoff_size.queue)
       or exists (select from unnest(_columns) c where cardinality(c::text[]) is distinct from _size) then
        raise exception 'a payload doesn''t have the form of the updates of queue "%"', handoff_size.queue
            using errcode = '22023', hint = 'pass the payload of the write as handoff_accept got it';
    end if;
    return _size;
end
$$;
