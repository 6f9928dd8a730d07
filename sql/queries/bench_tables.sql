create schema bench;
create table bench.zipf (i integer primary key, word text not null);
create table bench.total (word text primary key, n bigint not null) with (fillfactor = 85);
create table bench.slot (word text, slot integer, n bigint not null, primary key (word, slot)) with (fillfactor = 85);
create table bench.bare (word text not null, n bigint default 0);
