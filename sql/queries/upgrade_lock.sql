-- Waits for other upgrades and removals to end, and locks them out until the transaction ends. The statement comments
-- on the schema, or creates it: a second transaction that does so waits. An advisory lock wouldn't do, since every role
-- could take it.
-- The statement also sets the encoding and the string syntax of later statements, and lock_timeout to a minute if it is
-- 0.
--   {create}  whether to create the schema if it is missing. False: without the schema, the statement doesn't wait, and
--             locks nobody out
do $$
begin
    perform set_config('lock_timeout', '60s', true) where current_setting('lock_timeout') = '0';
    perform set_config('client_encoding', 'UTF8', true), set_config('standard_conforming_strings', 'on', true);
    loop
        begin
            if to_regnamespace('pgcombine') is null and {create} then
                create schema pgcombine;
            end if;
            if to_regnamespace('pgcombine') is not null then
                comment on schema pgcombine is 'Combine queues: what a user calls or reads, and the queues.';
            end if;
            exit;
        exception -- another upgrade has created the schema, or a removal has taken it away
            when unique_violation or duplicate_schema or invalid_schema_name then null;
        end;
    end loop;
end
$$
