-- pgcombine.add_column(queue, position, role, name, type, collation, combiner, ordered_by)
-- Records a column of a queue that is being created.
-- Tables written: pgcombine.queue_column.
-- Errors: PC003 two columns of one name, also among the old_… and new_… of the changes.
create or replace function pgcombine.add_column(queue text, "position" integer, role text, name text, type text,
    "collation" text, combiner text, ordered_by text)
returns void
language plpgsql
as $$
begin
    if exists (
        select from pgcombine.queue_column c
        where c.queue = add_column.queue
          and (c.name = add_column.name
               or (c.role = 'value' and add_column.name in ('old_' || c.name, 'new_' || c.name))
               or (add_column.role = 'value' and c.name in ('old_' || add_column.name, 'new_' || add_column.name)))
    ) then
        raise exception 'column "%" of queue "%" is there twice (value columns appear as old_… and new_… in changes)', add_column.name, add_column.queue
            using errcode = 'PC003', hint = 'give each column a name of its own';
    end if;
    insert into pgcombine.queue_column (queue, position, role, name, type, "collation", combiner, ordered_by)
    values (add_column.queue, add_column.position, add_column.role, add_column.name, add_column.type, add_column."collation",
            add_column.combiner, add_column.ordered_by);
end
$$;
