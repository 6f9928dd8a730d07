-- The most frequent phrases of all directories. Parameter: top.
select phrase, docs, total from pgcombine.phrases_values order by total desc, docs desc, phrase limit %(top)s
