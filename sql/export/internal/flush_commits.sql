-- pgcombine_internal.flush_commits()
-- Makes durable what this server has committed so far, so that a worker delivers no entry that a crash could take back.
-- A pass may commit with synchronous_commit = off. Other sessions then see its export entries before these are on disk.
-- A crash would lose the entries, and new entries would get their sequence numbers.
-- So an export worker calls this function after it has read entries and before it delivers them, in a transaction other
-- than the one that read them. Its commit flushes the write-ahead log up to itself, hence up to every commit that the
-- reader saw (and waits for synchronous standbys, if there are any).
-- A transaction that writes nothing wouldn't wait for the disk, so the function writes an empty message. It writes no
-- table.
create or replace function pgcombine_internal.flush_commits()
returns void
language plpgsql
as $$
begin
    if current_setting('synchronous_commit') in ('off', 'local') then
        perform set_config('synchronous_commit', 'on', true);
    end if;
    perform pg_logical_emit_message(true, 'pgcombine', '');
end
$$;
