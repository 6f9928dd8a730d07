-- The catalog is readable by everybody, as PostgreSQL's own is; the queues' tables are not:
-- grant insert on pgcombine.<queue>_updates (a writer) or select on <queue>_values (a reader) as usual.
grant usage on schema pgcombine to public;
grant select on pgcombine.queue, pgcombine.queue_column, pgcombine.bucket, pgcombine.combiner, pgcombine.observer, pgcombine.attachment to public;
-- whether a key is quarantined, but not which: <queue>_enqueue asks
grant select (queue) on pgcombine.quarantined_key to public;
-- how many keys are quarantined and how many buckets fail, but not which and why: the view status asks
grant select (queue, updates) on pgcombine.quarantine to public;
grant select (queue) on pgcombine.failure to public;
grant select on pgcombine.spark_load, pgcombine.spark_run to public;
grant select on pgcombine.schema_version, pgcombine.repeatable to public;
grant select on pgcombine.worker to public;
