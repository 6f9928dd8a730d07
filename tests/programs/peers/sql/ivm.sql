create extension pg_ivm;

do $$
begin
    -- pg_ivm's manual requires this setting; it takes effect in new connections
    execute format('alter database %I set session_preload_libraries = pg_ivm', current_database());
end
$$;

create table bench.event (word text not null, n bigint not null);
select pgivm.create_immv('bench.ivm', 'select word, sum(n) as n from bench.event group by word');
