create schema bench;
create table bench.zipf (i integer primary key, word text not null);
create table bench.total (word text primary key, n bigint not null) with (fillfactor = 85);
create table bench.bare (word text not null, n bigint default 0);
