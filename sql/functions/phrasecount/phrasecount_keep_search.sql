-- phrasecount.keep_search(target, here)
-- Creates the export phrases_search, which keeps the table phrasecount.search equal to the values of queue phrases.
--   target  connection string, without a password, of the table's database
--   here    true: the table is in this database; it is made and filled at once, with sequence 0, below that of every
--           entry. False: the present values are exported like changes, and the other database needs a schema
--           phrasecount
-- Waits for the passes that run; later passes export what they change.
-- Tables written: those of create_export, and phrasecount.search.
-- Errors: PC001 there is no queue phrases; PC002 the export exists; PC003 the target holds a password.
create or replace function phrasecount.keep_search(target text, here boolean)
returns void
language plpgsql
as $$
begin
    perform pgcombine.create_export('phrases_search', queue => 'phrases', exporter => 'postgres',
        target => keep_search.target, target_table => 'phrasecount.search', existing => not keep_search.here);
    if keep_search.here then
        drop table if exists phrasecount.search;
        create table phrasecount.search as
        select phrase collate "C" as phrase, docs, total, 0::bigint as pgcombine_seq, false as pgcombine_deleted
        from pgcombine.phrases_values;
        alter table phrasecount.search alter pgcombine_seq set not null, alter pgcombine_deleted set not null,
            add primary key (phrase);
    end if;
end
$$;
