-- Removes the objects of pgcombine quickstart that are there, in one transaction. An object that depends on them makes
-- the removal fail.
set local lock_timeout = '10s';
select pgcombine.drop_rollup(r.queue, force => true) from pgcombine.rollup r where r.queue = 'quickstart_spend';
select pgcombine.drop_queue(q.queue, force => true) from pgcombine.queue q where q.queue = 'quickstart_visits';
drop table if exists pgcombine_quickstart.request;
drop schema pgcombine_quickstart;
