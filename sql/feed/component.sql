-- The rows that changes and feeds register with the core (see sql/core/component.sql).
insert into pgcombine.right_privilege ("right", object, privileges) values
    ('monitor', 'pgcombine.feed_stat', 'select');
insert into pgcombine.component_table (name) values ('feed_consumer');
insert into pgcombine.hook (event, query) values
    ('close', $$
        select format('queue "%s" has the feed "%s"', l.queue, l.feed),
               format('select pgcombine.drop_feed(%L) first, or pass force => true to lose its changes', l.feed),
               format('select pgcombine.drop_feed(%L)', l.feed)
        from pgcombine.change_log l where l.queue = $1 and l.feed is not null$$),
    ('rebucket', 'select pgcombine_internal.turn_changes(l.queue) from pgcombine.change_log l where l.queue = $1'),
    ('truncate', 'select pgcombine_internal.keep_deletions(l.queue) from pgcombine.change_log l where l.queue = $1'),
    ('post_restore', 'select pgcombine_internal.renumber_changes(l.queue) from pgcombine.change_log l
        where l.queue = $1'),
    ('regenerate', 'select pgcombine_internal.regenerate_changes(l.queue) from pgcombine.change_log l
        where l.queue = $1'),
    ('generated', 'select l.feed || s from pgcombine.change_log l, unnest(array[''_read'', ''_snapshot'']) s'),
    ('verify', 'select pgcombine_internal.change_problems($1)'),
    ('upkeep', $$
        select format('select pgcombine_internal.reclaim_changes(%L)', l.queue)
        from pgcombine.change_log l
        where clock_timestamp() >= l.since + l.retention / 4
           or clock_timestamp() - l.retention >= any (l.closed)$$);
