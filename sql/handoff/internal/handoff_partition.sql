-- pgcombine_internal.handoff_partition(token)
-- Makes the partition of handoff_token for the day (UTC) of a token, unless it exists. The caller needs the rights of
-- the table's owner.
-- The function creates a table and attaches it, since this doesn't lock out writers of tokens.
create or replace function pgcombine_internal.handoff_partition(token uuid)
returns void
language plpgsql
set default_tablespace = '' -- not that of the caller, who may lack the right to create objects in it
as $$
declare
    _day constant bigint := floor(extract(epoch from pgcombine_internal.handoff_time(token)) / 86400);
    _name constant text := 'handoff_token_' || to_char(to_timestamp(_day * 86400) at time zone 'UTC', 'YYYYMMDD');
    _from constant text := lpad(to_hex(_day * 86400000), 12, '0');
    _until constant text := lpad(to_hex((_day + 1) * 86400000), 12, '0');
begin
    if to_regclass('pgcombine.' || _name) is not null then
        return;
    end if;
    -- If two sessions make the same partition, the second waits for this lock and then finds the partition.
    lock table pgcombine.handoff_token in share update exclusive mode;
    if to_regclass('pgcombine.' || _name) is null then
        execute format('create table pgcombine.%I (like pgcombine.handoff_token including all)', _name);
        execute format('comment on table pgcombine.%I is ''Tokens of a day.''', _name);
        execute format('alter table pgcombine.handoff_token attach partition pgcombine.%I for values from (%L) to (%L)',
            _name, _from || repeat('0', 20), _until || repeat('0', 20));
    end if;
end
$$;
