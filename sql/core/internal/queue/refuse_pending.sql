-- pgcombine_internal.refuse_pending(queue) → boolean
-- Raises when <queue>_current meets pending updates of a queue with a Python combiner, which can't run in a view.
-- Errors: PC008 always.
create or replace function pgcombine_internal.refuse_pending(queue text)
returns boolean
language plpgsql volatile cost 1000000
as $$
begin
    raise exception 'queue "%" has pending updates that only a worker can combine, since it has a Python combiner', queue
        using errcode = 'PC008', hint = format('drain it first, or read %s_values', queue);
end
$$;
