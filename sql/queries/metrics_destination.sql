select kind, name as destination, (state = 'up')::integer as up from pgcombine.destination
union all
select 'node', node, min((problem is null)::integer) from pgcombine.front_stat group by node
