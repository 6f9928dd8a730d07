-- Every role may see the definitions of fronts, and the views front_stat and shard_definition.
grant select on pgcombine.front, pgcombine.front_shard, pgcombine.front_stat, pgcombine.shard_definition to public;
