-- pgcombine_internal.refuse_fold(queue)
-- Raises if the server can't fold a queue's updates before they are enqueued.
-- Errors: PC001 unknown queue; PC003 a combiner in Python, which only workers can run.
create or replace function pgcombine_internal.refuse_fold(queue text)
returns void
language plpgsql stable
as $$
declare
    _column text;
begin
    select c.name into _column from pgcombine.queue_column c
    where c.queue = (pgcombine_internal.require_queue(refuse_fold.queue)).queue and c.combiner = 'python'
    order by c.position limit 1;
    perform pgcombine_internal.require(_column is null, 'PC003',
        format('updates of queue "%s" can''t be pre-aggregated: column "%s" has a combiner in Python', refuse_fold.queue, _column), 'write them without pre-aggregation');
end
$$;
