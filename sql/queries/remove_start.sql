-- Takes the schema out of use: drops what runs by itself (functions, triggers, event triggers), and renames the rest.
-- The tables are dropped later (remove_portion.sql), since dropping all of them may take too many locks.
do $$
begin
    drop schema if exists pgcombine_internal cascade;
    if to_regnamespace('pgcombine') is null then
        create schema pgcombine; -- only the other schema was left
    end if;
    alter schema pgcombine rename to pgcombine_removed;
end
$$
