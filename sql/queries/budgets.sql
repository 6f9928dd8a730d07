-- The budgets and their definition. Parameter, given twice: the name of a budget; null: all.
select b.queue as budget, array(
           select format('%%I %%s', c.name, c.type) from pgcombine.queue_column c
           where c.queue = b.queue and c.role = 'key' order by c.position) as key,
       b.amount, b.chips
from pgcombine.budget b
where b.queue = %s or %s::text is null
order by b.queue
