-- What fronts register with the core (see sql/core/component.sql). The last statement recreates the fronts' functions.
insert into pgcombine.hook (event, query) values
    ('enqueue', 'select pgcombine_internal.front_enqueue($1, $2, $3)'),
    ('generated', $$
        select f.queue || n
        from pgcombine.front f cross join unnest(array['_enqueue', '_get', '_get_many', '_shard_number']) n$$);
select pgcombine_internal.regenerate_front(f.queue) from pgcombine.front f order by f.queue;
