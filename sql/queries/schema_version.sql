-- The revision of the schema, and the digest of its functions.
select (select version_num from pgcombine.schema_version), (select digest from pgcombine.repeatable)
