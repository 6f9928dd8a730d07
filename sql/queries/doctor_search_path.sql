-- The schemas of this session's search path in which every role may create objects.
select s as "schema" from unnest(current_schemas(false)) s where has_schema_privilege('public', s, 'create')
