-- pgcombine.verify_quarantine(queue) → problems
-- The part of verify that compares the updates that are held, their keys and the list of quarantined keys.
create or replace function pgcombine.verify_quarantine(queue text)
returns setof text
language plpgsql stable
as $$
declare
    _held constant text := format('pgcombine.%I', verify_quarantine.queue || '_quarantine');
    _keys constant text := format('pgcombine.%I', verify_quarantine.queue || '_quarantine_keys');
    _count bigint;
begin
    execute format('select count(*) from %s q where not exists (
                        select from pgcombine.quarantined_key k where k.queue = $1 and k.id = q.pgcombine_key)', _held)
    into _count using verify_quarantine.queue;
    if _count > 0 then
        return next format('%s updates in %s are of no quarantined key: select pgcombine.quarantine_retry(%L) makes all that are held pending',
            _count, _held, verify_quarantine.queue);
    end if;
    execute format('select count(*) from %s q join %s as pgcombine_held using (pgcombine_key) where not (%s)', _held, _keys,
        pgcombine.held_key(verify_quarantine.queue)) into _count;
    if _count > 0 then
        return next format('%s updates in %s are of another key than the one that they are held for', _count, _held);
    end if;
    return query
    execute format('select format(''quarantined key %%s is missing in %%s: passes take its updates'', k.key, $2)
                    from pgcombine.quarantined_key k
                    where k.queue = $1 and not exists (select from %s h where h.pgcombine_key = k.id)', _keys)
    using verify_quarantine.queue, _keys;
    execute format('select count(*) from %s h where not exists (
                        select from pgcombine.quarantined_key k where k.queue = $1 and k.id = h.pgcombine_key)', _keys)
    into _count using verify_quarantine.queue;
    if _count > 0 then
        return next format('%s keys in %s are not in pgcombine.quarantined_key: passes leave their updates where they are', _count, _keys);
    end if;
    return query
    execute format('select format(''quarantined key %%s should have %%s updates held, and has %%s'', k.key, k.updates, h.updates)
                    from pgcombine.quarantined_key k
                    cross join lateral (select count(*) as updates from %s q where q.pgcombine_key = k.id) h
                    where k.queue = $1 and k.updates <> h.updates', _held)
    using verify_quarantine.queue;
end
$$;
