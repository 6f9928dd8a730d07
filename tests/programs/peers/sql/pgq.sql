create extension pgq;

select pgq.create_queue('bench'), pgq.register_consumer('bench', 'sum');
-- The ticker makes a tick when there are new events; without any, after 0.1 s. The tables rotate after 10 s.
select pgq.set_queue_config('bench', 'ticker_max_count', '1'),
    pgq.set_queue_config('bench', 'ticker_max_lag', '0'),
    pgq.set_queue_config('bench', 'ticker_idle_period', '0.1 s'),
    pgq.set_queue_config('bench', 'rotation_period', '10 s');

-- Rotates the tables if that is due, calls the ticker, and adds up one batch. Returns the number of the batch's keys,
-- or 0 without a batch. A packed event has the words of a transaction and their numbers as arrays; another event has
-- one word and its number.
create function bench.take(packed boolean) returns bigint language plpgsql as $$
declare
    batch bigint;
    keys bigint;
begin
    if exists (select from pgq.queue where queue_switch_step2 is null) then
        perform pgq.maint_rotate_tables_step2();  -- the second step must be in another transaction than the first
    end if;
    perform pgq.maint_rotate_tables_step1('bench'), pgq.ticker('bench');
    batch := pgq.next_batch('bench', 'sum');
    if batch is null then
        return 0;
    end if;
    if packed then
        insert into bench.total as t (word, n)
        select word, sum(n)
        from pgq.get_batch_events(batch) as e,
            unnest(e.ev_data::text[], e.ev_extra1::bigint[]) as update (word, n)
        group by word
        on conflict (word) do update set n = t.n + excluded.n;
    else
        insert into bench.total as t (word, n)
        select ev_type, sum(ev_data::bigint) from pgq.get_batch_events(batch) group by ev_type
        on conflict (word) do update set n = t.n + excluded.n;
    end if;
    get diagnostics keys = row_count;
    perform pgq.finish_batch(batch);
    return keys;
end
$$;

-- Whether the finished batches contain all committed events.
create function bench.taken() returns boolean language sql as $$
    select not exists (
        select from pgq.event_template as e  -- all tables of events inherit from this one
        where e.ev_txid >= txid_snapshot_xmin(t.tick_snapshot)
            and not txid_visible_in_snapshot(e.ev_txid, t.tick_snapshot)
    )
    from pgq.subscription as s
    join pgq.tick as t on t.tick_queue = s.sub_queue and t.tick_id = s.sub_last_tick
$$;
