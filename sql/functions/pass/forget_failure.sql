-- pgcombine.forget_failure(queue, bucket [, settled])
-- Forgets that passes over the bucket failed: one has taken all, or the keys at fault are quarantined.
-- Whoever may delete from a table may lock it against all. So no role but the owner may: a role that may run passes over
-- the queue marks the row, which policies let it do, and delete_marked deletes it.
--   settled  whether all of them are. If not, but the search for them got on, the bucket is only due at once
-- Tables written: pgcombine.failure.
create or replace function pgcombine.forget_failure(queue text, bucket integer, settled boolean default true)
returns void
language plpgsql
as $$
begin
    update pgcombine.failure f
    set attempts = case when settled then 0 else f.attempts end, retry_at = case when settled then f.retry_at else clock_timestamp() end
    where f.queue = forget_failure.queue and f.bucket = forget_failure.bucket;
    if found and settled then
        perform pgcombine.delete_marked();
    end if;
end
$$;
