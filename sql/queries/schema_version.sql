-- The revision of the schema's tables, and the digest of the first revision. Databases of early development states lack
-- the digest's column. Both are null if there is no revision.
select max(v.version_num), max(to_jsonb(v) ->> 'baseline') from pgcombine.schema_version v
