-- pgcombine_internal.renumber_changes(queue)
-- Gives a change log a new number after a restore from a dump, and deletes its changes except those that an export has
-- to deliver. Otherwise the restored log could give new changes sequences that the former database has given to other
-- changes. The new number makes the former offsets of consumers too old.
-- Two databases that are restored from one dump would draw the same new numbers. So the function first skips a random
-- count of numbers, which makes equal numbers unlikely.
-- Tables written: change_log, change_bucket, feed_consumer, export_bucket, <queue>_changes.
create or replace function pgcombine_internal.renumber_changes(queue text)
returns void
language plpgsql
as $$
declare
    _shift jsonb; -- for each bucket what is added to its sequences
begin
    perform setval(s, nextval(s) + (1000 * random())::bigint)
    from pg_get_serial_sequence('pgcombine.change_log', 'number') s;
    update pgcombine.change_log l set number = default where l.queue = renumber_changes.queue;
    select jsonb_object_agg(b.bucket, (l.number << 40) - least(b.last, x.after)) into _shift
    from pgcombine.change_log l
    join pgcombine.change_bucket b using (queue)
    left join lateral (
        select min(x.after) as after from pgcombine.export e join pgcombine.export_bucket x using (export)
        where e.queue = l.queue and x.bucket = b.bucket) x on true
    where l.queue = renumber_changes.queue;
    execute format('delete from pgcombine.%1$I c using pgcombine.change_log l
        where l.queue = $2 and c._sequence + ($1 ->> c._bucket::text)::bigint <= l.number << 40;',
        renumber_changes.queue || '_changes') using _shift, renumber_changes.queue;
    execute format('update pgcombine.%I c set _sequence = c._sequence + ($1 ->> c._bucket::text)::bigint',
        renumber_changes.queue || '_changes') using _shift;
    update pgcombine.change_bucket b set last = b.last + (_shift ->> b.bucket::text)::bigint
    where b.queue = renumber_changes.queue;
    update pgcombine.export_bucket x set after = x.after + (_shift ->> x.bucket::text)::bigint
    from pgcombine.export e where e.export = x.export and e.queue = renumber_changes.queue;
    update pgcombine.change_log l
    set reclaimed = default, turns = array(
        select (select jsonb_object_agg(e.key, e.value::bigint + (_shift ->> e.key)::bigint)
                from jsonb_each_text(t.turn) e)
        from unnest(l.turns) with ordinality t (turn, place) order by t.place)
    where l.queue = renumber_changes.queue;
    delete from pgcombine.feed_consumer c where c.queue = renumber_changes.queue;
end
$$;
