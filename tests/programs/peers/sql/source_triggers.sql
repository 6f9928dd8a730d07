-- Statement triggers that keep the sums of bench.source. For a change a trigger runs one statement: {append}, a query
-- of the change's sums by word, and {end}.
create function bench.follow() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        {append} select word, sum(n) from added group by word {end};
    elsif tg_op = 'DELETE' then
        {append} select word, -sum(n) from removed group by word {end};
    else
        {append} select word, sum(n)
        from (select word, n from added union all select word, -n from removed) as change
        group by word having sum(n) <> 0 {end};
    end if;
    return null;
end
$$;
create trigger inserted after insert on bench.source referencing new table as added
for each statement execute function bench.follow();
create trigger deleted after delete on bench.source referencing old table as removed
for each statement execute function bench.follow();
create trigger updated after update on bench.source referencing new table as added old table as removed
for each statement execute function bench.follow();
