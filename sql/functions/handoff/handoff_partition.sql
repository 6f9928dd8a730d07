-- pgcombine.handoff_partition(token)
-- Makes the partition of tokens for the day (UTC) of this token unless it is there. Attached, not created in its
-- place: that locks out nobody who writes tokens. For the owner, and handoff_claim.
create or replace function pgcombine.handoff_partition(token uuid)
returns void
language plpgsql
as $$
declare
    _day constant bigint := floor(extract(epoch from pgcombine.handoff_time(token)) / 86400);
    _name constant text := 'handoff_token_' || to_char(to_timestamp(_day * 86400) at time zone 'UTC', 'YYYYMMDD');
    _from constant text := lpad(to_hex(_day * 86400000), 12, '0');
    _until constant text := lpad(to_hex((_day + 1) * 86400000), 12, '0');
begin
    if to_regclass('pgcombine.' || _name) is not null then
        return;
    end if;
    -- one after the other; a lock of the table, other than an advisory one, lets this session see what came meanwhile
    lock table pgcombine.handoff_token in share update exclusive mode;
    if to_regclass('pgcombine.' || _name) is null then
        execute format('create table pgcombine.%I (like pgcombine.handoff_token including all)', _name);
        execute format('alter table pgcombine.handoff_token attach partition pgcombine.%I for values from (%L) to (%L)',
            _name, _from || repeat('0', 20), _until || repeat('0', 20));
    end if;
end
$$;
