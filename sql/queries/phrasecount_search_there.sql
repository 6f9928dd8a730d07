-- Prepares another database for the search table: makes the schema and drops an earlier table.
do $$
begin
    if to_regclass('pgcombine.phrases_search_exports') is not null then
        raise exception 'database "%" has a search table of its own', current_database()
            using errcode = 'PC003', hint = 'give --search-dsn another database, or drop its export phrases_search';
    end if;
    create schema if not exists phrasecount;
    drop table if exists phrasecount.search;
end
$$
