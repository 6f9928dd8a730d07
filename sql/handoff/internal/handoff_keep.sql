-- pgcombine_internal.handoff_keep(queue, shape, tokens, digests, payloads, placed, replicas, homes)
-- Keeps the texts of writes that came from other servers, so that this server can hand them on if their homes are lost.
-- The replayer drops a text when all servers that hold the write have its token.
-- Of a write that isn't whole here nothing is kept, and nothing at all beyond the quota (max_kept_bytes of
-- handoff_server, by the size of the table). unkept_at tells when that was.
--   homes  the id of each write's home; null: the text needn't be kept
-- Runs with its owner's rights, for roles that may insert into the queue's updates.
-- Tables written: handoff_kept, handoff_server.
-- Errors: 42501 the caller may not hand on writes of the queue; PC001 unknown queue; those of handoff_size.
create or replace function pgcombine_internal.handoff_keep(queue text, shape uuid, tokens uuid[], digests uuid[],
    payloads text[],
    placed text[], replicas integer, homes uuid[])
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.handoff_require(handoff_keep.queue);
    if pg_table_size('pgcombine.handoff_kept') >= (select s.max_kept_bytes from pgcombine.handoff_server s) then
        update pgcombine.handoff_server s set unkept_at = clock_timestamp()
        from (select from pgcombine.handoff_server l
              where coalesce(l.unkept_at < clock_timestamp() - interval '1 second',
                  true) for no key update skip locked) free;
        return;
    end if;
    insert into pgcombine.handoff_kept (token, queue, shape, digest, servers, placed, replicas, home, updates, payload)
    select w.token, handoff_keep.queue, handoff_keep.shape, w.digest, k.servers, handoff_keep.placed,
        handoff_keep.replicas, w.home,
           pgcombine_internal.handoff_size(handoff_keep.queue, w.payload), w.payload
    from unnest(handoff_keep.tokens, handoff_keep.digests, handoff_keep.payloads, handoff_keep.homes) w (token, digest,
        payload, home)
    join pgcombine.handoff_token k on k.token = w.token and k.digest = w.digest and k.queue = handoff_keep.queue
    where w.home is not null and pgcombine_internal.handoff_digest(w.payload) = w.digest
    on conflict do nothing;
end
$$;
