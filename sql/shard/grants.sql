-- Every role may see the definitions of fronts, and what a front on another server reads of this one.
grant select on pgcombine.front, pgcombine.front_shard, pgcombine.front_stat, pgcombine.shard_definition to public;
