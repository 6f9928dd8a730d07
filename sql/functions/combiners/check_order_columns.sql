-- pgcombine.check_order_columns(queue)
-- Checks what last and first are ordered by, once all columns of a queue are known.
-- Errors: PC003 it is no value column of the queue, or doesn't keep the time that last or first goes by.
create or replace function pgcombine.check_order_columns(queue text)
returns void
language plpgsql stable
as $$
declare
    _column pgcombine.queue_column;
    _wanted text;
    _found text;
begin
    for _column in
        select c.* from pgcombine.queue_column c where c.queue = check_order_columns.queue and c.ordered_by is not null
    loop
        _wanted := case _column.combiner when 'last' then 'max' else 'min' end;
        select c.combiner into _found
        from pgcombine.queue_column c
        where c.queue = check_order_columns.queue and c.name = _column.ordered_by;
        if _found is distinct from _wanted then
            raise exception '%(%) of column "%" needs a value column "%" with combiner %, which %',
                _column.combiner, _column.ordered_by, _column.name, _column.ordered_by, _wanted,
                case when _found is null then 'isn''t there' else 'has combiner ' || _found end
                using errcode = 'PC003', hint = format('for example ''%s timestamptz %s''', _column.ordered_by, _wanted);
        end if;
    end loop;
end
$$;
