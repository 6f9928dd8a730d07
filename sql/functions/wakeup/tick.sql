-- pgcombine.tick()
-- Notes the moment, at most once a second, so that pending updates can be dated (see time_of). Workers call it
-- while updates are pending, and so does who looks at the status. Does nothing where nothing can be written.
-- Older moments are thinned out: what is left of them is dense enough to tell an age to a thousandth.
-- Tables written: pgcombine.tick.
create or replace function pgcombine.tick()
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _last timestamptz;
begin
    if current_setting('transaction_read_only')::boolean then
        return;
    end if;
    select max(t.at) into _last from pgcombine.tick t;
    if _last > clock_timestamp() - interval '1 second'
       or not pg_try_advisory_xact_lock(hashtext('pgcombine.tick'), 0) then
        return;
    end if;
    insert into pgcombine.tick (at) values (clock_timestamp()) on conflict do nothing;
    if _last < date_trunc('minute', clock_timestamp()) then -- the first one in this minute
        delete from pgcombine.tick t
        using (select s.at, row_number() over (partition by s.width, floor(s.epoch / s.width) order by s.at) as place
               from (select a.at, extract(epoch from a.at) as epoch,
                            2 ^ floor(log(2, greatest(extract(epoch from now() - a.at) / 1000, 1))) as width
                     from pgcombine.tick a) s) thin
        where t.at = thin.at and thin.place > 1;
    end if;
end
$$;
