-- Makes the objects of pgcombine quickstart, in one transaction: either all are there, or none.
create schema pgcombine_quickstart;
comment on schema pgcombine_quickstart is 'made by pgcombine quickstart';
create table pgcombine_quickstart.request (customer text not null, tokens integer not null);
select pgcombine.create_queue('quickstart_visits', key => array['page text'], value => array['views bigint sum']);
select pgcombine.create_rollup('quickstart_spend', source => 'pgcombine_quickstart.request', key => array['customer'],
    value => array['count(*) as requests', 'sum(tokens) as tokens']);
