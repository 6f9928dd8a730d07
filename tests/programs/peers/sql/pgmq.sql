select pgmq.create('bench');

-- Reads up to 1,000 messages, adds them up and deletes them. Returns the number of messages.
-- After a rollback the messages are visible again at once.
create function bench.take() returns bigint language plpgsql as $$
declare
    taken bigint[];
begin
    with read as materialized (select msg_id, message from pgmq.read('bench', 30, 1000)),
    update as (
        select
            jsonb_array_elements_text(message -> 'word') as word,
            jsonb_array_elements_text(message -> 'n')::bigint as n
        from read
    ),
    sums as (
        insert into bench.total as t (word, n)
        select word, sum(n) from update group by word
        on conflict (word) do update set n = t.n + excluded.n
    )
    select array_agg(msg_id) into taken from read;
    if taken is null then
        return 0;
    end if;
    perform pgmq.delete('bench', taken);
    return cardinality(taken);
end
$$;
