-- pgcombine.shard_definition
-- The queues of this database, as a front on another server sees them.
--   queue       name of the queue
--   columns     its columns in order: name, role, type, collation, combiner, ordered_by, initial
--   rules       the settings that all shards of a front share. stable_hash: see the function of this name; also false
--               if a key's collation is nondeterministic
--   partitions  number of partitions of its tables
--   digest      digest of this database's SQL files
--   locale      how this database encodes and orders text
--   fenced      whether the queue refuses updates (see fence_shard)
create or replace view pgcombine.shard_definition as
select q.queue,
       pgcombine_internal.columns_of(q.queue) as columns,
       jsonb_build_object('delete_when', q.delete_when, 'expire_when', q.expire_when,
           'expire_silently', q.expire_silently, 'token_retention', q.token_retention,
           'stable_hash', pgcombine_internal.stable_hash(q.queue) and not exists (
               select from pgcombine.queue_column c
               join pg_attribute a on a.attname = c.name
                    and a.attrelid = to_regclass(format('pgcombine.%I', q.queue || '_values'))
               join pg_collation l on l.oid = a.attcollation
               where (c.queue, c.role) = (q.queue, 'key') and not l.collisdeterministic)) as rules,
       q.partitions, v.digest, pgcombine_internal.locale() as locale, pgcombine_internal.fenced(q.queue) as fenced
from pgcombine.queue q cross join pgcombine.schema_version v;
