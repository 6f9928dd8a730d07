-- The tables of the example application, in the schema phrasecount. The command pgcombine phrasecount applies this
-- file, and then the functions in this folder, in one transaction: at its first use in a database, and again when one
-- of these files has changed. So each statement must be repeatable. To change an existing table, add a statement after
-- create table, such as alter table … add column if not exists …. To change a function's parameters or result, drop the
-- former function here: drop function if exists ….
do $$
begin
    if to_regnamespace('phrasecount') is null then
        create schema phrasecount;
    end if;
exception when duplicate_schema or unique_violation then null; -- another run has just created the schema
end
$$;
-- Other runs that apply the file wait here, since they comment on the schema, too. This isn't an advisory lock, since
-- any role could hold that.
comment on schema phrasecount is '';

create table if not exists phrasecount.directory (
    id   integer generated always as identity primary key,
    path text not null unique
);
comment on table phrasecount.directory is 'Directories that were counted, by real path.';

create table if not exists phrasecount.document (
    hash bytea primary key,
    refs bigint not null check (refs > 0)
);
comment on table phrasecount.document is
    'Documents that at least one file has. hash: SHA-256 of the tokens. refs: number of files, over all directories.';

create table if not exists phrasecount.document_chunk (
    document bytea not null,
    seq      integer not null,
    tokens   text not null,
    primary key (document, seq)
);
comment on table phrasecount.document_chunk is
    'Tokens of a document, in rows of bounded size. A row starts with the last three tokens of the row before it.';

create table if not exists phrasecount.uri (
    directory    integer not null references phrasecount.directory on delete cascade,
    path         text not null,
    content_hash bytea not null,
    document     bytea not null references phrasecount.document,
    primary key (directory, path)
);
create index if not exists uri_document on phrasecount.uri (document);
comment on table phrasecount.uri is
    'Files that were counted: path below the directory, SHA-256 of the content, and the document.';

create table if not exists phrasecount.kept (
    document bytea primary key
);
comment on table phrasecount.kept is
    'Documents whose chunks a run has written before its commit. The next run removes them if that run died.';

-- Work tables. The column load names the run. The next run removes the rows of a run that died. The tables are
-- unlogged, since a crash of the server ends the run.
create unlogged table if not exists phrasecount.listed (
    load    uuid not null,
    n       integer not null,
    path    text not null,
    counted boolean not null,
    primary key (load, n)
);
comment on table phrasecount.listed is 'Work: the files that the run found. counted is false for files beyond --limit.';

create unlogged table if not exists phrasecount.scanned (
    load         uuid not null,
    n            integer not null,
    content_hash bytea,
    document     bytea,
    left_out     bigint not null default 0,
    problem      text,
    detail       text,
    primary key (load, n)
);
comment on table phrasecount.scanned is
    'Work: new and edited files. left_out counts occurrences of phrases that are too long to be a key.';

create unlogged table if not exists phrasecount.move (
    load         uuid not null,
    n            integer,
    path         text not null,
    content_hash bytea,
    document     bytea,
    old_document bytea
);
comment on table phrasecount.move is 'Work: files that are new, edited or removed (document is null).';

create unlogged table if not exists phrasecount.delta (
    load     uuid not null,
    position bigint,
    document bytea not null,
    refs     bigint not null,
    sign     integer not null,
    n        integer
);
create index if not exists delta_position on phrasecount.delta (load, position);
comment on table phrasecount.delta is
    'Work: documents whose number of files changes by refs. sign: 1 the document is new, -1 no file has it any more, 0 '
    'otherwise. n: a file that has it.';
