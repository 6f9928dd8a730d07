-- Contenders keep the sums of this table by word. Each client changes only its own rows.
create table bench.source (client integer not null, number bigint not null, word text not null, n bigint not null);
create index on bench.source (client, number);
