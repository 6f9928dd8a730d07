-- How many phrases have a value.
select count(*) from pgcombine.phrases_values
