-- pgcombine_internal.refuse_bytes(queue, plan [, source])
-- Raises an error if the values that a pass collects in memory take more than 256 megabytes (see takes_bytes). Updates
-- of quarantined keys don't count.
--   queue   the queue's row
--   source  see takes_bytes; null: the updates of the plan
-- Errors: 54000 the values take more than that.
create or replace function pgcombine_internal.refuse_bytes(queue pgcombine.queue, plan pgcombine.plan,
    source text default null)
returns void
language plpgsql stable
as $$
declare
    _source text := source;
begin
    if ($1).pass ->> 'bytes' is not null and _source is null then
        select pgcombine_internal.fill('(select * from {updates} where {hash} & {range_mask} = {hash_range}'
            ' and not exists (select from {quarantined_keys} where {key_is_quarantined})) as updates',
            ($1).pass || to_jsonb($2)
                || jsonb_build_object('updates', pgcombine_internal.log_sql(($1).queue, l.tables, l.condition)))
        into _source
        from pgcombine_internal.bucket_log(($1).queue, ($2).bucket, ($2).mark) l;
    end if;
    perform pgcombine_internal.require(not pgcombine_internal.takes_bytes($1, 268435456, _source),
        '54000', format('queue "%s": the values that a pass collects take more than 256 megabytes',
            ($1).queue),
        'once the key is quarantined, drop its updates, or put them back in portions');
end
$$;
