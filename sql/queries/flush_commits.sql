-- Makes all earlier commits of this server durable, so that a worker delivers no entry that a crash could take back.
-- A pass may commit with synchronous_commit = off. Other sessions then see its export entries before these are on disk.
-- A crash would lose the entries, and new entries would get the same sequence numbers.
-- So a worker runs this query alone in another transaction, after it has read entries and before it delivers them. The
-- commit flushes the write-ahead log, which includes every commit that the worker saw, and waits for synchronous
-- standbys, if there are any. A transaction that writes nothing wouldn't wait, so the query writes an empty message.
select case when current_setting('synchronous_commit') in ('off', 'local')
            then set_config('synchronous_commit', 'on', true) end,
       pg_logical_emit_message(true, 'pgcombine', '')
