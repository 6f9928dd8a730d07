-- pgcombine_internal.reads(statement) → boolean
-- Returns whether an observer's statement only reads, so that a pass runs it only if its rows are read. Such a
-- statement is a select, values or table, perhaps after comments, in parentheses, or after a with clause.
-- A with clause before an insert, update, delete or merge is recognized by that word. If the word is only a name or a
-- text in a select, add_observer refuses the statement.
create or replace function pgcombine_internal.reads(statement text)
returns boolean
language sql immutable
as $$
    select b.statement ~* '^(select|values|table)\y'
        or (b.statement ~* '^with\y' and b.statement !~* '\y(insert|update|delete|merge)\y')
    from (select regexp_replace(reads.statement, '^(\s|\(|--[^\n]*\n|/\*([^*]|\*+[^*/])*\*+/)*', '')) as b (statement)
$$;
