-- Calls post_restore, in case the database was restored from a dump, and stores the digest of the SQL files.
--   {digest}  this digest
do $$
begin
    perform pgcombine.post_restore();
    insert into pgcombine.repeatable (digest) values ('{digest}')
    on conflict (one) do update set digest = excluded.digest;
end
$$
