-- Every role may see the definitions of fronts, and the view that a front on another server reads.
grant select on pgcombine.front, pgcombine.front_shard, pgcombine.front_stat, pgcombine.shard_definition to public;
