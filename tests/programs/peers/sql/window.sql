-- An incremental roll-up: rolled_up.last_id is the id up to which the rows have been added up.
create table bench.event (id bigserial primary key, word text not null, n bigint not null);
create table bench.rolled_up (last_id bigint not null, sequence regclass not null);
insert into bench.rolled_up values (0, pg_get_serial_sequence('bench.event', 'id'));

-- Adds up the rows since the last call. Returns the number of their ids, including ids that were never committed.
--
-- A writer draws its ids after it has locked the table for writing. So when the lock below is granted, every writer
-- with an id up to end_id has ended, and the statement after the lock sees all their rows. The exception releases
-- the lock at once.
create function bench.roll_up() returns bigint language plpgsql as $$
declare
    first_id bigint;
    end_id bigint;
begin
    select last_id + 1, pg_sequence_last_value(sequence) into first_id, end_id from bench.rolled_up for update;
    if coalesce(end_id, 0) < first_id then
        return 0;
    end if;
    begin
        lock table bench.event in share row exclusive mode;
        raise exception using errcode = 'XX999';
    exception when sqlstate 'XX999' then
        null;
    end;
    insert into bench.total as t (word, n)
    select word, sum(n) from bench.event where id between first_id and end_id group by word order by word
    on conflict (word) do update set n = t.n + excluded.n;
    update bench.rolled_up set last_id = end_id;
    return end_id - first_id + 1;
end
$$;
