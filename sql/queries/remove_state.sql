-- Whether there is a schema to remove, and whether an interrupted removal has left tables.
select to_regnamespace('pgcombine') is not null or to_regnamespace('pgcombine_internal') is not null,
       to_regnamespace('pgcombine_removed') is not null
