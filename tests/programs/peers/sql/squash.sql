-- Additions and sums are rows of one table, and a reader adds up all rows of a key.
create table bench.squashed (
    id bigint generated always as identity primary key,
    word text not null,
    n bigint not null,
    is_sum boolean not null default false
);
create index on bench.squashed (word);
create index on bench.squashed (word) where not is_sum;

-- Replaces the rows of a key by one row with their sum, for up to 5,000 keys with additions. Returns the number of
-- replaced rows; 0 while another transaction runs this function.
create function bench.squash() returns bigint language sql as $$
    with only_one as materialized (select pg_try_advisory_xact_lock(1) as mine),
    keys as materialized (
        select distinct word from bench.squashed where not is_sum and (select mine from only_one) limit 5000
    ),
    gone as (delete from bench.squashed as s using keys where s.word = keys.word returning s.word, s.n),
    sums as (insert into bench.squashed (word, n, is_sum) select word, sum(n), true from gone group by word)
    select count(*) from gone
$$;
