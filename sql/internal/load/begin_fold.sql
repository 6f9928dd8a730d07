-- pgcombine_internal.begin_fold(queue)
-- Makes the temporary table pg_temp.pgcombine_fold with the queue's columns. end_fold turns its rows into one update a
-- key. The table lasts until the transaction ends.
-- Errors: PC001 unknown queue; PC003 a combiner in Python.
create or replace function pgcombine_internal.begin_fold(queue text)
returns void
language plpgsql
as $$
begin
    perform pgcombine_internal.refuse_fold(begin_fold.queue);
    execute format('create temporary table pgcombine_fold (%s) on commit drop', pgcombine_internal.update_columns(begin_fold.queue));
end
$$;
