-- Makes the earlier commits of this server durable, so that a worker delivers no entry that a crash could take back. A
-- pass may commit with synchronous_commit = off: other sessions see its entries before these are on disk.
-- A worker runs this query in a transaction of its own, after it has read entries and before it delivers them. The
-- commit flushes the write-ahead log. The query writes a message, since a transaction that writes nothing flushes
-- nothing.
select case when current_setting('synchronous_commit') in ('off', 'local')
            then set_config('synchronous_commit', 'on', true) end,
       pg_logical_emit_message(true, 'pgcombine', '')
