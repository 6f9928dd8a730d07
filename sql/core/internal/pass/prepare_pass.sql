-- pgcombine_internal.prepare_pass(queue, bucket [, source, observed]) → text
-- Prepares the statement of passes for small batches in the session, if it isn't prepared yet. Returns the name of the
-- prepared statement. A session keeps about a hundred such statements; then a new one replaces the oldest.
--   queue             the queue's row
--   source, observed  see pass_template; a source has two parameters, the numbers of the first and the last key
create or replace function pgcombine_internal.prepare_pass(queue pgcombine.queue, bucket integer,
    source text default null, observed boolean default true)
returns text
language plpgsql
as $$
declare
    _queue pgcombine.queue := prepare_pass.queue;
    _name constant text := 'pgcombine_' || md5(format('%s %s %s %s %s',
        _queue.pass ->> 'digest', bucket, bucket % _queue.partitions, observed, source));
    _oldest text;
begin
    if not exists (select from pg_prepared_statements p where p.name = _name) then
        select case when count(*) > 100 then (array_agg(p.name order by p.prepare_time))[1] end into _oldest
        from pg_prepared_statements p where starts_with(p.name, 'pgcombine_') and length(p.name) = length(_name);
        if _oldest is not null then
            execute format('deallocate %I', _oldest);
        end if;
        if source is not null then
            _queue.statements := array[pgcombine_internal.pass_template(_queue.queue, true, source, observed)];
        end if;
        execute format('prepare %I (boolean, tid, tid, %s) as %s', _name,
            case when source is null then 'txid_snapshot[], bigint, txid_snapshot, boolean[], bigint, bigint'
                 else 'integer, integer' end,
            pgcombine_internal.pass_sql(_queue, bucket, true));
    end if;
    return _name;
end
$$;
