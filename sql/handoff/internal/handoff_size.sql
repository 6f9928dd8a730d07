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
    perform pgcombine_internal.require(
        cardinality(_columns) = (select count(*) from pgcombine.queue_column c where c.queue = handoff_size.queue)
        and not exists (select from unnest(_columns) c where cardinality(c::text[]) is distinct from _size)
        and _size is not null, '22023',
        format('a payload doesn''t have the form of the updates of queue "%s"', queue),
        'pass the payload of the write as handoff_accept got it');
    return _size;
end
$$;
