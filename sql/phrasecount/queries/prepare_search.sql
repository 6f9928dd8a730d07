-- Prepares another database for the search table, which the export makes there.
create schema if not exists phrasecount;
drop table if exists phrasecount.search
