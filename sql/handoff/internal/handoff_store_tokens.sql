-- pgcombine_internal.handoff_store_tokens(queue, tokens, digests, servers [, coordinator] [, coordinators, payloads,
--     shape, placed, replicas]) → (token, status, slots)
-- Stores the tokens of writes. The caller's transaction then inserts the updates of the writes with status 'applied'.
-- The rows come in the order of the given tokens; handoff_apply explains the status.
--   coordinator   name of the server whose hints these are. If that server is registered here, the function records the
--                 greatest token of the writes whose updates that server holds, for readers of the queue
--                 (handoff_status) and, if the caller works, for handoff_last. If all writes are to be retained,
--                 the function records a token at most about once a second
--   coordinators  for each write the id of its coordinator; null: the write needn't be retained, as far as the sender
--                 knows. The other writes, if new, are retained with their payloads, so that this server can deliver
--                 them if their coordinators are lost. A write is also retained if this server knows a server of the
--                 queue that the writer and the coordinator don't know: under an id that no server has, so that the
--                 replayer and a repair deliver it there. Without a payload, that server is flagged for repair. At the
--                 quota (max_retained_bytes of handoff_server, by the size of the table) no write is retained, and
--                 not_retained_at is set. A write whose payload here isn't the whole write (its digest differs) isn't
--                 retained either
--   shape, placed, replicas  see handoff_apply; they are stored with the payload
--   slots         the slots of the updates that a rebuild brought, if it brought only a part of the write
--                 (handoff_partial)
-- Runs with its owner's rights, for roles that may insert into the queue's updates.
-- Tables written: handoff_token, handoff_partial, handoff_queue, handoff_delivery, handoff_retained, handoff_server,
-- handoff_replica.
-- Errors: 42501 the caller lacks the right to replicate writes of the queue; PC001 unknown queue; PC041 a token isn't a
-- UUID of version 7, or is more than a day ahead; those of handoff_size.
create or replace function pgcombine_internal.handoff_store_tokens(queue text, tokens uuid[], digests uuid[],
    servers jsonb[], coordinator text default null, coordinators uuid[] default null, payloads text[] default null,
    shape uuid default null, placed text[] default null, replicas integer default null, out token uuid, out status text,
    out slots integer[])
returns setof record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _oldest timestamptz;
    _new uuid[];
    _wrong uuid;
    _unnamed text[]; -- servers of the queue that the writer didn't name
    _nobody uuid; -- the id of no server, if there are such servers
begin
    perform pgcombine_internal.handoff_require(queue);
    _oldest := now() - (select s.retention from pgcombine.handoff_server s);
    select t into _wrong from unnest(tokens) t
    where pgcombine_internal.handoff_time(t) > now() + interval '1 day' or pgcombine_internal.handoff_time(t) is null;
    if found then
        raise exception 'token % %', _wrong, coalesce(
                'was made in the future, at ' || pgcombine_internal.handoff_time(_wrong), 'isn''t a UUID of version 7')
            using errcode = 'PC041', hint = 'check the clocks: it is ' || now() || ' on this server';
    end if;

    perform pgcombine_internal.handoff_partition(min(t::text)::uuid)
    from unnest(tokens) t where pgcombine_internal.handoff_time(t) > _oldest
    group by floor(extract(epoch from pgcombine_internal.handoff_time(t)) / 86400);
    if not exists (select from pgcombine.handoff_queue q where q.queue = handoff_store_tokens.queue) then
        insert into pgcombine.handoff_queue (queue) values (handoff_store_tokens.queue) on conflict do nothing;
    end if;
    if coordinator is not null then
        insert into pgcombine.handoff_delivery (destination, token, delivered, deduplicated, queue, witness)
        select coordinator, case when pgcombine_internal.has_right(null, 'work', pgcombine_internal.caller())
                   then m.token else '00000000-0000-0000-0000-000000000000' end,
               0, 0, handoff_store_tokens.queue, m.token
        from (select max(w.token::text)::uuid as token
              from unnest(tokens, handoff_store_tokens.servers) w (token, servers)
              where w.servers is null or w.servers ? coordinator) m
        where m.token is not null and exists (select from pgcombine.handoff_replica r where r.name = coordinator)
          and (array_position(coalesce(coordinators, '{null}'), null) > 0
               or not exists (select from pgcombine.handoff_delivery d
                              where d.destination = coordinator and d.queue = handoff_store_tokens.queue
                                and d.at > clock_timestamp() - interval '1 second'));
    end if;

    -- in token order, so that two transactions with the same tokens can't deadlock
    with fresh as (
        insert into pgcombine.handoff_token as k (token, queue, digest, servers)
        select distinct on (w.token) w.token, handoff_store_tokens.queue, w.digest,
               (select array_agg(s order by s) from jsonb_array_elements_text(w.servers) s)
        from unnest(tokens, digests, handoff_store_tokens.servers) with ordinality w (token, digest, servers, number)
        where pgcombine_internal.handoff_time(w.token) > _oldest
        order by w.token, w.number
        on conflict do nothing
        returning k.token
    )
    select coalesce(array_agg(f.token), '{}') into _new from fresh f;
    select array_agg(r.name), '00000000-0000-0000-0000-000000000000' into _unnamed, _nobody
    from pgcombine.handoff_queue q join pgcombine.handoff_replica r on r.name = any (q.servers)
    where q.queue = handoff_store_tokens.queue and q.replicas >= cardinality(q.servers)
      and r.name <> all (handoff_store_tokens.placed)
    having count(*) > 0;
    if _new <> '{}' and (_nobody is not null or array_remove(coordinators, null) <> '{}') then
        if pg_table_size('pgcombine.handoff_retained')
           >= (select s.max_retained_bytes from pgcombine.handoff_server s) then
            update pgcombine.handoff_server s set not_retained_at = clock_timestamp()
            from (select from pgcombine.handoff_server l
                  where coalesce(l.not_retained_at < clock_timestamp() - interval '1 second', true)
                  for no key update skip locked) free;
        else
            insert into pgcombine.handoff_retained (token, queue, shape, digest, servers, placed, replicas, coordinator,
                updates, payload)
            select w.token, k.queue, handoff_store_tokens.shape, w.digest, k.servers, handoff_store_tokens.placed,
                   handoff_store_tokens.replicas, coalesce(_nobody, w.coordinator),
                   pgcombine_internal.handoff_size(k.queue, w.payload), w.payload
            from unnest(tokens, digests, coordinators, payloads) w (token, digest, coordinator, payload)
            join pgcombine.handoff_token k on k.token = w.token and k.digest = w.digest
            where w.token = any (_new) and coalesce(_nobody, w.coordinator) is not null
              and pgcombine_internal.handoff_digest(w.payload) = w.digest
            on conflict do nothing;
        end if;
        perform pgcombine_internal.handoff_require_repair(s, 'it lacks a write that this server couldn''t retain',
            by_tokens => true)
        from unnest(_unnamed) s
        where (select count(*) from pgcombine.handoff_retained k where k.token = any (_new)) < cardinality(_new);
    end if;

    return query
    with gone as (
        delete from pgcombine.handoff_partial p where p.token = any (_new) returning p.token, p.slots
    )
    select w.token, case when w.token = any (_new) and row_number() over (partition by w.token order by w.number) = 1
                             then 'applied'
                         when pgcombine_internal.handoff_time(w.token) <= _oldest and k.token is null then 'expired'
                         when (k.digest, k.queue) = (w.digest, handoff_store_tokens.queue) then 'duplicate'
                         else 'conflict' end, g.slots
    from unnest(tokens, digests) with ordinality w (token, digest, number)
    left join pgcombine.handoff_token k on k.token = w.token
    left join gone g on g.token = w.token
    order by w.number;
end
$$;
