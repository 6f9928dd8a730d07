-- Waits for other upgrades and downgrades to end, and locks them out until the transaction ends. The lock is a comment
-- on the schema, or its creation: other transactions that comment on the schema or create it wait, and only its owner
-- can comment on it. An advisory lock could be taken by any role. The statement also sets lock_timeout to a minute if
-- the session has none, and the encoding and string syntax of the statements that follow.
--   {create}  whether to create the schema if it is missing
do $$
begin
    perform set_config('lock_timeout', '60s', true) where current_setting('lock_timeout') = '0';
    perform set_config('client_encoding', 'UTF8', true), set_config('standard_conforming_strings', 'on', true);
    loop
        begin
            if to_regnamespace('pgcombine') is not null then
                comment on schema pgcombine is 'Combine queues: what a user calls or reads, and the queues.';
            elsif {create} then
                create schema pgcombine;
            end if;
            exit;
        exception -- another upgrade has created the schema, or a downgrade has removed it
            when unique_violation or duplicate_schema or invalid_schema_name then null;
        end;
    end loop;
end
$$
