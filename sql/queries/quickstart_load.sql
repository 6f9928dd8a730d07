-- A transaction of the writers of pgcombine quickstart: 50 views of pages, some of which are much more popular than
-- others, ten rows of the rollup's table, and the deletion of a few of its rows.
insert into pgcombine.quickstart_visits_updates (page, views)
select '/' || (array['home', 'news', 'about', 'docs', 'blog', 'jobs'])[1 + floor(6 * random() ^ 3)::integer], 1
from generate_series(1, 50);
insert into pgcombine_quickstart.request (customer, tokens)
select (array['acme', 'duck', 'fox', 'owl'])[1 + floor(4 * random() ^ 2)::integer], ceil(100 * random())
from generate_series(1, 10);
delete from pgcombine_quickstart.request r
where r.ctid = any (array(select o.ctid from pgcombine_quickstart.request o limit 2 for update skip locked));
