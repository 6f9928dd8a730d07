-- Every role may see the definitions of rollups.
grant select on pgcombine.rollup, pgcombine.rollup_part to public;
