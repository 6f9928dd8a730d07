-- The rows that feeds register with the core (see sql/core/component.sql).
insert into pgcombine.right_privilege ("right", object, privileges) values
    ('monitor', 'pgcombine.feed_stat', 'select');
insert into pgcombine.component_table (name) values ('feed_consumer');
insert into pgcombine.hook (event, query) values
    ('close', $$
        select format('queue "%s" has the feed "%s"', f.queue, f.feed),
               format('select pgcombine.drop_feed(%L) first, or pass force => true to lose its changes', f.feed),
               format('select pgcombine.drop_feed(%L)', f.feed)
        from pgcombine.feed f where f.queue = $1 order by f.feed$$),
    ('rebucket', 'select pgcombine_internal.rebucket_feed(f.feed) from pgcombine.feed f where f.queue = $1'),
    ('post_restore', 'select pgcombine_internal.renew_feed(f.feed) from pgcombine.feed f where f.queue = $1'),
    ('regenerate', 'select pgcombine_internal.regenerate_feed(f.feed) from pgcombine.feed f where f.queue = $1'),
    ('generated', 'select f.feed || s from pgcombine.feed f, unnest(array[''_read'', ''_snapshot'']) s'),
    ('verify', 'select pgcombine_internal.feed_problems($1)'),
    ('upkeep', $$
        select format('select pgcombine_internal.feed_upkeep(%L)', f.feed)
        from pgcombine.feed f
        where clock_timestamp() >= f.since + f.retention / 4
           or clock_timestamp() - f.retention >= any (f.closed)$$);
