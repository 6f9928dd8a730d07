-- Grants rights on new tables and views, calls post_restore, in case the database was restored from a dump, and stores
-- the digest of the SQL files.
--   {digest}  this digest
do $$
begin
    perform pgcombine_internal.keep_rights();
    perform pgcombine.post_restore();
    update pgcombine.schema_version set digest = '{digest}';
    drop table pg_temp.older;
end
$$
