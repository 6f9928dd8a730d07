-- pgcombine_internal.sample(kind) → (queue, at, figures)
-- Returns figures of the queues on which the caller has any right: how much is pending (see pending_about), or sizes
-- (see sizes).
-- Looking at all queues takes too long for a call each second. So figures are kept in pgcombine.sample, and a call
-- renews the oldest ones: those of one queue at least, and no further queue after a few milliseconds. Then no call renews
-- any for 400 times as long as the look at a queue took (sizes: 1000 times), for half a second at least and five seconds
-- at most. So looks take about half a percent of a processor core, however many queues there are and however often they
-- are read. Sizes of the last half minute stay. Where a worker sleeps (see slept_on), it need not look. In a read-only
-- transaction nothing is kept. No call waits for another, nor long for a session that has locked a queue's tables: the
-- former figures stay.
--   kind  pending or sizes
--   at    when the figures were right; null: they aren't known yet
-- Where something is pending it records the time, so that a later call can date it (see tick).
-- Runs with its owner's rights. Every role may call it, since it returns rows only of queues on which the role has a
-- right.
-- Tables written: pgcombine.sample; those of tick.
create or replace function pgcombine_internal.sample(kind text, out queue text, out at timestamptz, out figures jsonb)
returns setof record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
    _until constant timestamptz := clock_timestamp() + interval '3 milliseconds';
    _keep constant interval := case sample.kind when 'pending' then interval '0' else interval '30 seconds' end;
    _rest constant integer := case sample.kind when 'pending' then 400 else 1000 end;
    _renews constant boolean := coalesce((select max(s.at + least(5, greatest(0.5, _rest * s.seconds)) * interval '1 second') from pgcombine.sample s where s.kind = sample.kind) < clock_timestamp(), true);
    _all constant boolean := pgcombine_internal.has_right('', 'monitor', pgcombine_internal.caller());
    _asleep constant text[] := case when sample.kind = 'pending' then array(select pgcombine_internal.slept_on()) end;
    _only_failing boolean;
    _failing boolean;
    _looked boolean := false;
    _was timestamptz;
    _pending boolean := false;
begin
    for queue, at, figures, _only_failing, _failing in
        select q.queue, s.at, s.figures, q.queue = any (_asleep), exists (select from pgcombine.failure f where f.queue = q.queue)
        from pgcombine.queue q
        left join pgcombine.sample s on s.queue = q.queue and s.kind = sample.kind
        where _all or pgcombine_internal.has_right(q.queue, 'use', pgcombine_internal.caller())
        order by s.at nulls first, q.queue
    loop
        if _only_failing and not _failing then
            at := clock_timestamp();
            figures := '[]';
        elsif at is null or _renews and at < clock_timestamp() - _keep and (not _looked or clock_timestamp() < _until) then
            _was := at;
            at := clock_timestamp();
            begin
                figures := case sample.kind when 'pending' then pgcombine_internal.pending_about(sample.queue, _only_failing)
                                            else pgcombine_internal.sizes(sample.queue) end;
                _looked := true;
                -- Another caller that keeps figures of the queue has the lock until its transaction ends.
                if not current_setting('transaction_read_only')::boolean
                   and pg_try_advisory_xact_lock(hashtext('pgcombine.sample.' || sample.kind), hashtext(sample.queue)) then
                    insert into pgcombine.sample as s (queue, kind, at, figures, seconds)
                    values (sample.queue, sample.kind, sample.at, sample.figures, extract(epoch from clock_timestamp() - sample.at))
                    on conflict on constraint sample_pkey do update set (at, figures, seconds) = (excluded.at, excluded.figures, excluded.seconds);
                end if;
            exception
                when lock_not_available then at := _was;
                when serialization_failure then null; -- this snapshot is older than another caller's figures
                when undefined_table or foreign_key_violation or sqlstate 'PC001' then continue; -- the queue is being dropped
            end;
        end if;
        _pending := _pending or coalesce(sample.kind = 'pending' and figures <> '[]', false);
        return next;
    end loop;
    if _pending then
        perform pgcombine_internal.tick();
    end if;
end
$$;
