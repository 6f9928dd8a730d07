-- Adopts the database if it was restored from a dump, and stores the version of the functions: {digest}.
do $$
begin
    perform pgcombine.adopt();
    insert into pgcombine.repeatable (digest) values ('{digest}')
    on conflict (one) do update set digest = excluded.digest;
end
$$
