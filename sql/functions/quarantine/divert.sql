-- pgcombine.divert(queue, bucket) → bigint
-- Moves pending updates of quarantined keys from the bucket into <queue>_quarantine; returns how many. Part of a
-- pass, after its claim: retry and drop claim the bucket as well, so keys enter and leave the quarantine only
-- between passes. The count of each key is updated, so that a rival with an older snapshot gets 40001.
-- Tables written: the bucket's updates, <queue>_quarantine, quarantined_key.
create or replace function pgcombine.divert(queue text, bucket integer)
returns bigint
language plpgsql
as $$
declare
    _columns text;
    _moved bigint;
begin
    if not exists (select from pgcombine.quarantined_key k where k.queue = divert.queue) then
        return 0; -- no pass pays for an empty quarantine
    end if;
    select string_agg(format('%I', c.name), ', ' order by c.position) into _columns
    from pgcombine.queue_column c where c.queue = divert.queue;
    execute format(
        'with moved as (
             delete from %1$s using pgcombine.%2$I as pgcombine_held
             where %3$s%4$s%5$s
             returning pgcombine_key, %6$s
         ), held as (
             insert into pgcombine.%7$I (pgcombine_key, %6$s) select pgcombine_key, %6$s from moved
         ), counted as (
             update pgcombine.quarantined_key k set updates = k.updates + m.updates
             from (select pgcombine_key, count(*) as updates from moved group by 1) m
             where k.id = m.pgcombine_key
         )
         select count(*) from moved',
        (pgcombine.bucket_tables(divert.queue, divert.bucket))[1], divert.queue || '_quarantine_keys',
        nullif(pgcombine.bucket_slice(divert.queue, divert.bucket), '') || ' and ', pgcombine.plain_rows(divert.queue),
        pgcombine.held_key(divert.queue), _columns, divert.queue || '_quarantine')
    into _moved;
    return _moved;
end
$$;
