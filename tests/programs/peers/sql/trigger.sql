create table bench.event (word text not null, n bigint not null);

create function bench.add_up() returns trigger language plpgsql as $$
begin
    insert into bench.total as t (word, n)
    select word, sum(n) from added group by word order by word
    on conflict (word) do update set n = t.n + excluded.n;
    return null;
end
$$;

create trigger add_up after insert on bench.event referencing new table as added
for each statement execute function bench.add_up();
