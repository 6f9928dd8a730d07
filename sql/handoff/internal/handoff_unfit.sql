-- pgcombine_internal.handoff_unfit(queue, payload [, placed, replicas]) → (number, state, error)
-- Finds the updates of a payload that the queue refuses for their data. The function tries to insert ranges of updates,
-- and halves a range that fails. It leaves out updates of keys that this server doesn't hold (handoff_local_updates).
-- No insert stays, since ranges that fit are rolled back.
-- Errors: those of an insert that don't concern the data. The function catches its own error HT000, which rolls back a
-- range that fits.
create or replace function pgcombine_internal.handoff_unfit(queue text, payload text, placed text[] default null,
    replicas integer default null, out number integer, out state text, out error text)
returns setof record
language plpgsql
as $$
declare
    _insert constant text := pgcombine_internal.handoff_insert_sql(queue);
    _from integer[] := array[1];
    _until integer[] := array[cardinality((payload::text[])[1]::text[])];
    _first integer;
    _last integer;
begin
    perform pgcombine_internal.portable_text();
    while cardinality(_from) > 0 loop
        _first := _from[cardinality(_from)];
        _last := _until[cardinality(_until)];
        _from := trim_array(_from, 1);
        _until := trim_array(_until, 1);
        begin
            execute _insert using array[pgcombine_internal.handoff_subset(payload,
                array(select generate_series(_first, _last)))];
            raise exception 'it fits' using errcode = 'HT000',
                hint = 'handoff_unfit catches this error, which rolls back a range that fits';
        exception
            when sqlstate 'HT000' then
                null;
            when data_exception or integrity_constraint_violation or program_limit_exceeded or raise_exception
                or sqlstate 'PC004' then
                if _first = _last then
                    continue when pgcombine_internal.handoff_local_updates(queue,
                        pgcombine_internal.handoff_subset(payload, array[_first]), placed, replicas) is null;
                    get stacked diagnostics state = returned_sqlstate, error = message_text;
                    number := _first;
                    return next;
                else
                    _from := _from || array[(_first + _last) / 2 + 1, _first];
                    _until := _until || array[_last, (_first + _last) / 2];
                end if;
        end;
    end loop;
end
$$;
