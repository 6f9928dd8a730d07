-- pgcombine_internal.begin_pass(queue, bucket, observers, combiners, mask, slice)
-- Raises, so that workers of an older version with Python functions stop: workers of revision 0015 began their passes
-- by this call. Their workers without such functions go on, by combine (see bloated).
-- Errors: PC008 always.
create or replace function pgcombine_internal.begin_pass(queue text, bucket integer, observers text[], combiners text[], mask bigint, slice bigint,
    out statement text, out condition text, out packed boolean, out folds boolean, out pending bigint, out more boolean,
    out diverted bigint, out observe text[])
language plpgsql
as $$
begin
    raise exception 'the schema was upgraded since this worker of queue "%" was started', begin_pass.queue
        using errcode = 'PC008', hint = 'restart it with the newer version of pgcombine';
end
$$;
