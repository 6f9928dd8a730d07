-- pgcombine_internal.tick()
-- Records the time with a transaction id, at most once a second, so that pending updates can be dated (see time_of). At
-- the recorded time no transaction with this id or a higher one had ended. The call does nothing in a read-only
-- transaction.
-- The function thins out older rows, so that the remaining ones date an update to about a thousandth of its age.
-- Tables written: pgcombine.tick.
create or replace function pgcombine_internal.tick()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    -- a time that isn't later than the snapshot of the insert below
    _at constant timestamptz := case current_setting('transaction_isolation')
        when 'read committed' then clock_timestamp() else now() end;
    _last timestamptz;
begin
    if current_setting('transaction_read_only')::boolean then
        return;
    end if;
    select max(t.at) into _last from pgcombine.tick t;
    if _last > _at - interval '1 second' then
        return;
    end if;
    insert into pgcombine.tick (at, next_id) values (_at, txid_snapshot_xmax(txid_current_snapshot()))
        on conflict do nothing;
    if _last < date_trunc('minute', clock_timestamp()) then -- thins out once a minute
        delete from pgcombine.tick t
        where t.at = any (array(
            select f.at
            from pgcombine.tick f
            join (select s.at, row_number() over (partition by s.width, floor(s.epoch / s.width) order by s.at) as place
                  from (select a.at, extract(epoch from a.at) as epoch,
                               2 ^ floor(log(2, greatest(extract(epoch from now() - a.at) / 1000, 1))) as width
                        from pgcombine.tick a) s) thin on thin.at = f.at and thin.place > 1
            for update of f skip locked));
    end if;
end
$$;
