-- pgcombine.reads(statement) → boolean
-- Whether a statement of an observer reads, and so runs as a part of a pass only if its rows are asked for: a select,
-- values or table, maybe after comments, in parentheses, or after a with clause. A with clause before an insert,
-- update, delete or merge is told by that word; where it is but a name or a text in a select, add_observer refuses.
create or replace function pgcombine.reads(statement text)
returns boolean
language sql immutable
as $$
    select b.statement ~* '^(select|values|table)\y'
        or (b.statement ~* '^with\y' and b.statement !~* '\y(insert|update|delete|merge)\y')
    from (select regexp_replace(reads.statement, '^(\s|\(|--[^\n]*\n|/\*([^*]|\*+[^*/])*\*+/)*', '')) as b (statement)
$$;
