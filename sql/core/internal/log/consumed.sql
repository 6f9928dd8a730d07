-- pgcombine_internal.consumed(queue, bucket, last, seen, horizon) → boolean
-- Returns whether a pass over all keys of the bucket has combined its updates with ids up to last, and every present
-- and future snapshot sees that pass.
--   seen, horizon  see consumed_segments
create or replace function pgcombine_internal.consumed(queue text, bucket integer, last bigint, seen txid_snapshot,
    horizon bigint)
returns boolean
language plpgsql stable
as $$
declare
    _pass pgcombine.pass;
begin
    for _pass in
        select p.* from pgcombine.pass p
        where p.queue = consumed.queue and p.bucket = consumed.bucket
        order by p.pass desc
    loop
        if pg_snapshot_xmin(_pass.mark)::text::bigint <= consumed.last then
            return false;
        elsif _pass.range_mask is null and _pass.tx < consumed.horizon
            and txid_visible_in_snapshot(_pass.tx, consumed.seen) then
            return true;
        end if;
    end loop;
    return false;
end
$$;
