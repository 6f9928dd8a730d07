-- A rollup's definition is no secret; its owner writes it.
grant select on pgcombine.rollup to public;
