-- pgcombine_internal.sample(kind) → (queue, at, figures)
-- Returns figures of the queues: pending updates (see backlogs) or sizes (see sizes).
-- The function stores figures in pgcombine.sample. It returns stored figures for a hundred times as long as it took to
-- find those of all queues: pending updates for 1 to 60 seconds, sizes for 30 to 300. Stored figures that had an update
-- pending for more than ten seconds aren't returned once a pass has ended after they were found. Stored figures with
-- pending updates are returned for a minute if no pass has ended since ten seconds before they were found. If the
-- setting pgcombine.fresh is on, the call finds all figures anew.
-- A transaction that is read-only or keeps one snapshot stores no figures. If the call waits for a lock on a queue's
-- tables for 0.2 s, it returns the queue's former figures, if there are any.
--   kind  pending or sizes
--   at    when the figures were right; null: they aren't known yet
-- Runs with its owner's rights, for roles that monitor or work.
-- Tables written: pgcombine.sample; those of tick, so that later calls can date pending updates.
-- Errors: 42501 the caller lacks the right monitor.
create or replace function pgcombine_internal.sample(kind text, out queue text, out at timestamptz, out figures jsonb)
returns setof record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
    _stores constant boolean := not current_setting('transaction_read_only')::boolean
        and current_setting('transaction_isolation') = 'read committed';
    _fresh constant boolean := coalesce(current_setting('pgcombine.fresh', true) = 'on', false);
    _keep interval;
    _good interval;
    _ended timestamptz; -- when the last pass ended; null: more than ten seconds before the figures were found
    _was timestamptz;
    _new boolean; -- whether the figures were found anew
begin
    perform pgcombine_internal.require_right(null, 'monitor', pgcombine_internal.caller());
    select case sample.kind when 'pending' then least(60, greatest(1, 100 * coalesce(sum(s.seconds), 0)))
                            else least(300, greatest(30, 100 * coalesce(sum(s.seconds), 0))) end * interval '1 second'
    into _keep from pgcombine.sample s where s.kind = sample.kind;

    for queue, at, figures in
        select q.queue, s.at, s.figures
        from pgcombine.queue q
        left join pgcombine.sample s on s.queue = q.queue and s.kind = sample.kind
        order by q.queue
    loop
        _good := _keep;
        if kind = 'pending' and figures <> '[]' then
            -- a pass that ended before the figures were found may have committed after that
            select max(p.ended) into _ended from pgcombine.pass p where p.queue = sample.queue
                and p.ended > at - interval '10 seconds';
            if _ended is null then
                _good := interval '1 minute';
            elsif _ended > at and (select min((f ->> 'since')::timestamptz)
                from jsonb_array_elements(figures) f) < at - interval '10 seconds' then
                _good := interval '0';
            end if;
        end if;
        if at is null or _fresh or at < clock_timestamp() - _good then
            _was := at;
            _new := false;
            at := case when _stores then clock_timestamp() else now() end; -- a time not later than the snapshot
            begin
                figures := case kind when 'pending' then pgcombine_internal.backlogs(queue)
                                            else pgcombine_internal.sizes(queue) end;
                _new := true;
                -- another caller that stores figures of the queue locks the row until its transaction ends
                if _stores and (_was is null or exists (select from pgcombine.sample s
                    where (s.queue, s.kind) = (sample.queue, sample.kind) for update skip locked)) then
                    insert into pgcombine.sample as s (queue, kind, at, figures, seconds)
                    values (sample.queue, sample.kind, sample.at, sample.figures,
                        extract(epoch from clock_timestamp() - sample.at))
                    on conflict on constraint sample_pkey do update
                        set (at, figures, seconds) = (excluded.at, excluded.figures, excluded.seconds);
                end if;
            exception
                -- another session keeps the tables locked, or has just exchanged them
                when lock_not_available or undefined_table then at := case when _new then at else _was end;
                -- the queue is being dropped
                when foreign_key_violation or sqlstate 'PC001' then continue;
            end;
        end if;
        return next;
    end loop;

    if found then
        perform pgcombine_internal.tick();
    end if;
end
$$;
