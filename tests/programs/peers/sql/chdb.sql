create database bench engine = Atomic;
create table bench.total (word String, n SimpleAggregateFunction(sum, Int64))
engine = AggregatingMergeTree order by word
settings fsync_after_insert = 1, fsync_part_directory = 1;
