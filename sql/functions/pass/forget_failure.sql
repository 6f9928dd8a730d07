-- pgcombine.forget_failure(queue, bucket)
-- Forgets that passes over the bucket failed: one has taken all, or the keys at fault are quarantined.
-- Whoever may delete from a table may lock it against all. So no role but the owner may: a role that may run passes over
-- the queue marks the row, which policies let it do, and delete_marked deletes it.
-- Tables written: pgcombine.failure.
create or replace function pgcombine.forget_failure(queue text, bucket integer)
returns void
language plpgsql
as $$
begin
    update pgcombine.failure f set attempts = 0
    where f.queue = forget_failure.queue and f.bucket = forget_failure.bucket;
    if found then
        perform pgcombine.delete_marked();
    end if;
end
$$;
