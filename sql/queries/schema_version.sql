-- The revision of the schema's tables, and the digest of the SQL files that were applied.
select (select version_num from pgcombine.schema_version), (select digest from pgcombine.repeatable)
