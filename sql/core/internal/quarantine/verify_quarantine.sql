-- pgcombine_internal.verify_quarantine(queue) → problems
-- The part of verify that compares quarantined updates, their keys and the list of quarantined keys.
create or replace function pgcombine_internal.verify_quarantine(queue text)
returns setof text
language plpgsql stable
as $$
declare
    _quarantine constant text := format('pgcombine.%I', verify_quarantine.queue || '_quarantine');
    _keys constant text := format('pgcombine.%I', verify_quarantine.queue || '_quarantine_keys');
begin
    return query execute pgcombine_internal.fill($check$
        with quarantined as (select * from pgcombine.quarantined_key k where k.queue = $1)
        select format('%s updates in %s belong to no quarantined key: select pgcombine.retry_quarantined(%L) makes all '
            'quarantined updates pending', count(*), $2, $1)
        from {quarantine} q where not exists (select from quarantined k
            where k.id = q.pgcombine_key) having count(*) > 0
        union all
        select format('%s updates in %s belong to another key than the one for which they are quarantined', count(*),
            $2)
        from {quarantine} q join {quarantined_keys} using (pgcombine_key)
            where not ({key_is_quarantined}) having count(*) > 0
        union all
        select format('quarantined key %s is missing in %s: passes combine its updates', k.key, $3)
        from quarantined k where not exists (select from {keys} h where h.pgcombine_key = k.id)
        union all
        select format('%s keys in %s are not in pgcombine.quarantined_key: passes neither combine nor quarantine their '
            'updates', count(*), $3)
        from {keys} h where not exists (select from quarantined k where k.id = h.pgcombine_key) having count(*) > 0
        union all
        select format('quarantined key %s should have %s quarantined updates, but has %s', k.key, k.updates, h.updates)
        from quarantined k cross join lateral (select count(*) as updates from {quarantine} q
            where q.pgcombine_key = k.id) h
        where k.updates <> h.updates$check$, jsonb_build_object('quarantine', _quarantine, 'keys', _keys,
            'quarantined_keys', pgcombine_internal.quarantined_keys(verify_quarantine.queue),
            'key_is_quarantined', pgcombine_internal.key_is_quarantined(verify_quarantine.queue)))
    using verify_quarantine.queue, _quarantine, _keys;
end
$$;
