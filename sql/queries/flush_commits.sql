-- Makes durable what this server has committed so far, so that a worker delivers no entry that a crash could take back.
-- A pass may commit with synchronous_commit = off. Other sessions then see its export entries before these are on disk.
-- A crash would lose the entries, and new entries would get their sequence numbers.
-- So a worker runs this after it has read entries and before it delivers them, alone in another transaction. Its
-- commit flushes the write-ahead log up to itself, hence up to every commit that the reader saw (and waits for
-- synchronous standbys, if there are any). A transaction that writes nothing wouldn't wait: it writes an empty message.
select case when current_setting('synchronous_commit') in ('off', 'local')
            then set_config('synchronous_commit', 'on', true) end,
       pg_logical_emit_message(true, 'pgcombine', '')
