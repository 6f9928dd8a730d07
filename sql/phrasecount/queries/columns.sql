-- The columns of the queue phrases: name, type, combiner.
select name, type, combiner from pgcombine.queue_column where queue = 'phrases' order by position
