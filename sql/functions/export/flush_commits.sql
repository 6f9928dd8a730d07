-- pgcombine.flush_commits()
-- Makes durable what this server has committed so far. A pass may commit with synchronous_commit = off: others see
-- its export entries before they are on disk, and a crash would take them back, and the sequence numbers with them,
-- which new entries would then get. So an export worker calls this after it has read entries and before it delivers
-- them, in another transaction than the one that read them, and with that one's read behind it: this commit writes
-- the log up to itself, hence up to every commit that the reader saw (and to synchronous standbys, if there are any).
-- A transaction that writes nothing would not wait for the disk, so it writes an empty message. No table is touched.
create or replace function pgcombine.flush_commits()
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
