-- pgcombine_internal.planned_table(queue, partition, planned) → true
-- Raises an error unless a partition of the queue's values is the table that a reader planned to read.
--   planned  the oid that the table had. rebucket makes other tables, some of them under the old names
-- A reader puts the call into its statement's condition. When PostgreSQL evaluates the condition, the statement has
-- locked its table, so no session can give the table's name to another table. The function looks the name up in the
-- current catalog, even under an older snapshot, since such a snapshot would see a new table empty.
-- Errors: PC013 the table is another one, or gone.
create or replace function pgcombine_internal.planned_table(queue text, partition integer, planned oid)
returns boolean
language plpgsql stable parallel safe
as $$
begin
    if to_regclass(pgcombine_internal.values_table(queue, partition))
        is distinct from planned then
        raise exception 'the values of queue "%" were moved to other tables after this read was planned', queue
            using errcode = 'PC013', hint = 'the queue was rebucketed: read again, with tables from a new call of '
                'pgcombine_internal.values_tables or, in Spark, with a new frame (spark.read … load())';
    end if;
    return true;
end
$$;
