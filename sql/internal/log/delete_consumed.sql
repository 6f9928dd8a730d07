-- pgcombine_internal.delete_consumed(queue, relation, last, seen) → bigint
-- Deletes a portion of a segment's combined updates, those with ids up to last (see consumed_segments); returns their
-- number. It replaces truncation where the caller can't see which snapshots are held: older snapshots still see deleted
-- rows. Autovacuum frees the space.
-- Tables written: the segment.
create or replace function pgcombine_internal.delete_consumed(queue text, relation text, last bigint, seen txid_snapshot)
returns bigint
language plpgsql
as $$
declare
    _deleted bigint := 0;
begin
    if pg_stat_get_live_tuples(relation::regclass) > 0 then -- otherwise each call would scan the rows that earlier calls deleted
        execute format('lock table only %s in row exclusive mode nowait', relation);
        if not exists (select from pgcombine_internal.consumed_segments(delete_consumed.queue, seen, 9223372036854775807) c
                       where (c.relation, c.last) = (delete_consumed.relation, delete_consumed.last)) then
            return 0; -- a rebucket has exchanged the segment
        end if;
        execute format('delete from %s where ctid = any (array(select ctid from %s where pgcombine_tx <= $1 limit 50000))', relation, relation) using last;
        get diagnostics _deleted = row_count;
    end if;
    return _deleted;
exception when lock_not_available or undefined_table then
    return 0;
end
$$;
