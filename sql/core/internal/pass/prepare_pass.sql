-- pgcombine_internal.prepare_pass(queue, bucket) → text
-- Prepares the statement of passes over a bucket in the session, if it isn't prepared yet. Returns the name of the
-- prepared statement. A session keeps about a hundred such statements; then a new one replaces the oldest.
--   queue  the queue's row
create or replace function pgcombine_internal.prepare_pass(queue pgcombine.queue, bucket integer)
returns text
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := prepare_pass.queue;
    _name constant text := 'pgcombine_' || md5(format('%s %s %s',
        _queue.pass ->> 'digest', bucket, bucket % _queue.partitions));
    _oldest text;
begin
    if not exists (select from pg_prepared_statements p where p.name = _name) then
        select case when count(*) > 100 then (array_agg(p.name order by p.prepare_time))[1] end into _oldest
        from pg_prepared_statements p where starts_with(p.name, 'pgcombine_') and length(p.name) = length(_name);
        if _oldest is not null then
            execute format('deallocate %I', _oldest);
        end if;
        execute format('prepare %I (boolean, tid, tid, txid_snapshot[], bigint, txid_snapshot, boolean[], bigint, '
            'bigint) as %s', _name, pgcombine_internal.pass_sql(_queue, bucket));
    end if;
    return _name;
end
$$;
