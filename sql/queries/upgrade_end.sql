-- Grants rights on new tables and views, calls post_restore, in case the database was restored from a dump, and stores
-- the revision and the digest of the SQL files.
--   {head}    the revision
--   {digest}  the digest
do $$
begin
    perform pgcombine_internal.keep_rights();
    perform pgcombine.post_restore();
    update pgcombine.schema_version set version_num = '{head}', digest = '{digest}';
    drop table pg_temp.older;
end
$$
