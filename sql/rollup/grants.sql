-- Every role may see the definitions of rollups.
grant select on pgcombine.rollup to public;
