-- Prepares another database for the search table.
create schema if not exists phrasecount;
drop table if exists phrasecount.search
